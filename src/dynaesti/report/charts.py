"""The report's charts as Vega-Lite specifications, built with Altair.

The charts name their data; the page supplies them.
"""

from __future__ import annotations

from typing import Any

from dynaesti.errors import MissingExtraError

BLUE = "#1f6fb4"
ORANGE = "#c8641c"
GREY = "#8a8f98"
PALETTE = [
    "#1f6fb4",
    "#c8641c",
    "#2e8b57",
    "#a23b72",
    "#7a5cc0",
    "#8c6d1f",
    "#0f8b8d",
    "#c0392b",
]  # apart in lightness too


def charts(facts: dict[str, Any], *, amounts: bool) -> dict[str, dict[str, Any]]:
    """Vega-Lite specifications of all charts of the page, by name.

    `facts` are those of `page_data`; `amounts` says whether any item has a mean response in place
    of categories.
    """
    alt = _altair()
    time = alt.X(
        "t:T" if facts["stamps"] else "t:Q", title=facts["time_title"], axis=alt.Axis(grid=False)
    )
    if not facts["stamps"]:
        time = time.scale(zero=False, nice=False)
    return {
        name: chart.to_dict()
        for name, chart in {
            "people": _people(alt, time),
            "cohort": _cohort(alt, time, facts),
            "item": _item(alt, amounts),
            "information": _information(alt),
            "wright": _wright(alt),
            "priors": _priors(alt, facts["priors"]),
            "calibration": _calibration(alt),
            "trace": _trace(alt),
        }.items()
    }


def _altair() -> Any:
    """Altair, or an error that says how to install it."""
    try:
        import altair as alt
    except ImportError as error:
        raise MissingExtraError(
            "the report needs altair and vl-convert-python: pip install 'dynaesti[report]'"
        ) from error
    return alt


def _data(alt: Any, name: str) -> Any:
    """Data that the page supplies by name."""
    return alt.NamedData(name=name)


def _people(alt: Any, time: Any) -> Any:
    """Curves with bands, and the answers that moved them."""
    legend = alt.Legend(
        orient="top", labelLimit=260, symbolOpacity=1, symbolType="stroke", symbolStrokeWidth=3
    )
    colour = alt.Color("name:N", title=None, scale=alt.Scale(range=PALETTE), legend=legend)
    base = alt.Chart(_data(alt, "curves"))
    band = base.mark_area(opacity=0.2).encode(
        time, alt.Y("l:Q", title="ability", scale=alt.Scale(zero=False)), alt.Y2("u:Q"), colour
    )
    line = base.mark_line(strokeWidth=2.2).encode(time, alt.Y("m:Q"), colour)
    single = (
        alt.Chart(_data(alt, "singles"))
        .mark_rule(strokeWidth=3, opacity=0.5)
        .encode(time, alt.Y("l:Q"), alt.Y2("u:Q"), colour)
    )
    layers = (band, line, single, _answers(alt, time), _hovered_point(alt, time, colour))
    return alt.layer(*layers).properties(width="container", height=340)


def _hovered_point(alt: Any, time: Any, colour: Any, data: str = "curves") -> Any:
    """The point of a curve nearest to the pointer.

    The page makes the words of its tooltip: Vega-Lite loses text where the nearest point is sought.
    """
    hover = alt.selection_point(
        fields=["t"], nearest=True, on="pointerover", empty=False, name=f"hover_{data}"
    )
    return (
        alt.Chart(_data(alt, data))
        .mark_point(size=70, filled=True)
        .encode(
            time,
            alt.Y("m:Q"),
            colour,
            opacity=alt.condition(hover, alt.value(1), alt.value(0)),
            tooltip=alt.Tooltip("m:Q"),
        )
        .add_params(hover)
    )


def _answers(alt: Any, time: Any) -> Any:
    """Answers on the curves, as triangles in the direction that they moved the curve."""
    return (
        alt.Chart(_data(alt, "answers"))
        .mark_point(filled=True, opacity=0.75)
        .encode(
            time,
            alt.Y("m:Q"),
            alt.Color("name:N"),
            shape=alt.Shape(
                "moved:N",
                title="the answer moved the curve",
                legend=alt.Legend(orient="top"),
                scale=alt.Scale(domain=["up", "down"], range=["triangle-up", "triangle-down"]),
            ),
            size=alt.Size("size:Q", legend=None, scale=alt.Scale(range=[25, 260])),
            tooltip=[
                alt.Tooltip("name:N", title="who"),
                alt.Tooltip("item:N"),
                alt.Tooltip("y:Q", title="response"),
                alt.Tooltip("d:Q", title="moved the curve by", format="+.2f"),
            ],
        )
    )


def _cohort(alt: Any, time: Any, facts: dict[str, Any]) -> Any:
    """The cohort's mean with its band, groups in colour, before the middle 80 % of people."""
    people = alt.Chart(_data(alt, "quantiles"))
    title = alt.Y("low:Q", title="ability", scale=alt.Scale(zero=False))
    spread = people.mark_area(opacity=0.13, color=GREY).encode(time, title, alt.Y2("high:Q"))
    if not facts["has_cohort"]:
        median = people.mark_line(strokeWidth=2.2, color=BLUE).encode(time, alt.Y("mid:Q"))
        return alt.layer(spread, median, _hovered_quantiles(alt, time)).properties(
            width="container", height=280
        )
    legend = alt.Legend(
        orient="top", labelLimit=260, symbolOpacity=1, symbolType="stroke", symbolStrokeWidth=3
    )
    colour = alt.Color(
        "group:N",
        title=None,
        sort=None,
        scale=alt.Scale(range=PALETTE),
        legend=legend if facts["groups"] else None,
    )
    base = alt.Chart(_data(alt, "means"))
    band = base.mark_area(opacity=0.3).encode(time, alt.Y("l:Q"), alt.Y2("u:Q"), colour)
    line = base.mark_line(strokeWidth=2.4).encode(time, alt.Y("m:Q"), colour)
    layers = (spread, band, line, _hovered_point(alt, time, colour, "means"))
    return alt.layer(*layers).properties(width="container", height=300)


def _hovered_quantiles(alt: Any, time: Any) -> Any:
    """Points that show a tooltip of the people's quantiles."""
    return (
        alt.Chart(_data(alt, "quantiles"))
        .mark_point(size=90, filled=True, opacity=0, color=BLUE)
        .encode(
            time,
            alt.Y("mid:Q"),
            tooltip=[
                alt.Tooltip("mid:Q", title="median", format=".2f"),
                alt.Tooltip("low:Q", title="10 %", format=".2f"),
                alt.Tooltip("high:Q", title="90 %", format=".2f"),
                alt.Tooltip("n:Q", title="people"),
            ],
        )
    )


def _item(alt: Any, amounts: bool) -> Any:
    """Response functions of one item."""
    title = "probability, or mean response" if amounts else "probability of each response"
    return (
        alt.Chart(_data(alt, "functions"))
        .mark_line(strokeWidth=2.2)
        .encode(
            alt.X("ability:Q", axis=alt.Axis(grid=False)),
            alt.Y("value:Q", title=title, scale=alt.Scale(zero=True)),
            alt.Color(
                "category:N",
                title="response",
                sort=None,
                scale=alt.Scale(range=PALETTE),
                legend=alt.Legend(orient="top"),
            ),
            tooltip=[
                alt.Tooltip("category:N", title="response"),
                alt.Tooltip("ability:Q", format=".2f"),
                alt.Tooltip("value:Q", format=".2f"),
            ],
        )
        .properties(width="container", height=220)
    )


def _information(alt: Any) -> Any:
    """Information of one item over ability."""
    return (
        alt.Chart(_data(alt, "information"))
        .mark_area(opacity=0.35, line={"color": ORANGE}, color=ORANGE)
        .encode(
            alt.X("ability:Q", axis=alt.Axis(grid=False)),
            alt.Y("value:Q", title="information"),
            tooltip=[
                alt.Tooltip("ability:Q", format=".2f"),
                alt.Tooltip("value:Q", title="information", format=".2f"),
            ],
        )
        .properties(width="container", height=150)
    )


def _wright(alt: Any) -> Any:
    """People above and items below, in the same bins."""

    def half(what: str, colour: str, title: str | None, reverse: bool) -> Any:
        return (
            alt.Chart(_data(alt, "wright"))
            .transform_filter(f"datum.what == '{what}'")
            .mark_bar(color=colour, opacity=0.85)
            .encode(
                alt.X("from:Q", title=title, scale=alt.Scale(zero=False, nice=False)),
                alt.X2("to:Q"),
                alt.Y(
                    "count:Q",
                    title=what,
                    axis=alt.Axis(tickMinStep=1, format="d"),
                    scale=alt.Scale(reverse=reverse),
                ),
                alt.Y2Datum(0),
                tooltip=[
                    alt.Tooltip("from:Q", format=".2f"),
                    alt.Tooltip("to:Q", format=".2f"),
                    alt.Tooltip("count:Q", title=what),
                ],
            )
            .properties(width="container", height=130)
        )

    return alt.vconcat(
        half("people", BLUE, None, False),
        half("items", ORANGE, "ability, and location of items", True),
        spacing=4,
    ).resolve_scale(x="shared")


def _priors(alt: Any, count: int) -> Any:
    """Weights of the prior mixture's kernels in the population."""
    return (
        alt.Chart(_data(alt, "priors"))
        .mark_bar(color=BLUE)
        .encode(
            alt.X(
                "weight:Q", title="share of the population", axis=alt.Axis(format="%", tickCount=5)
            ),
            alt.Y("prior:N", title=None, sort="-x", axis=alt.Axis(labelLimit=240)),
            tooltip=[alt.Tooltip("whole:N", title="prior"), alt.Tooltip("weight:Q", format=".1%")],
        )
        .properties(width="container", height=26 * count)
    )


def _calibration(alt: Any) -> Any:
    """Predicted against observed mean responses, of moving and constant abilities."""
    base = alt.Chart(_data(alt, "calibration"))
    colour = alt.Color(
        "abilities:N",
        title="abilities",
        scale=alt.Scale(domain=["moving", "constant"], range=[BLUE, ORANGE]),
        legend=alt.Legend(orient="top"),
    )
    x = alt.X("predicted:Q", title="predicted mean response", scale=alt.Scale(zero=False))
    diagonal = base.mark_line(color=GREY, strokeDash=[4, 4], strokeWidth=1).encode(
        x, alt.Y("predicted:Q", title="observed", scale=alt.Scale(zero=False))
    )
    bars = base.mark_rule(strokeWidth=2).encode(x, alt.Y("lower:Q"), alt.Y2("upper:Q"), colour)
    dots = base.mark_point(filled=True, size=60).encode(
        x,
        alt.Y("observed:Q"),
        colour,
        tooltip=[
            "abilities:N",
            alt.Tooltip("predicted:Q", format=".3f"),
            alt.Tooltip("observed:Q", format=".3f"),
            "n:Q",
        ],
    )
    return alt.layer(diagonal, bars, dots).properties(width="container", height=280)


def _trace(alt: Any) -> Any:
    """Change of the items at each iteration."""
    return (
        alt.Chart(_data(alt, "trace"))
        .mark_line(point=True, color=BLUE)
        .encode(
            alt.X("iteration:Q", axis=alt.Axis(grid=False, tickMinStep=1)),
            alt.Y("change:Q", title="change, in standard errors", scale=alt.Scale(type="log")),
            tooltip=[
                "iteration:Q",
                "stage:N",
                alt.Tooltip("change:Q", format=".2g"),
                alt.Tooltip("log_evidence:Q", format=",.1f"),
            ],
        )
        .properties(width="container", height=180)
    )
