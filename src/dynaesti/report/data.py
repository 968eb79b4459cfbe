"""The numbers behind a report: sampled where they are many, rounded, and ready for JSON."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np

from dynaesti import __version__
from dynaesti.core import Array, Ints
from dynaesti.data import UNSTATED
from dynaesti.errors import option
from dynaesti.model import BUILT_IN, BandwidthKernel, Kernel, Level
from dynaesti.report import constant
from dynaesti.report.citation import how_to_cite
from dynaesti.report.observed import observed_shares
from dynaesti.report.summary import (
    Phrase,
    beside_others,
    findings_for_all,
    headline,
    lead,
    typographic,
    verdicts,
)
from dynaesti.report.terms import LEVEL, headings, terms
from dynaesti.report.words import findings
from dynaesti.results import (
    Changes,
    Fit,
    StaticComparison,
    changes_between_own_times,
    item_fit,
)
from dynaesti.tables import as_frame

# kept with the options, but found: the page's cautions and findings say them
FINDINGS = (
    "threads",
    "cohort_left_out",
    "ability_probability",
    "kernel_parameters",
    "simpler_model",
)
# what a page of a few MB can hold
MOST_PEOPLE = 3000
MOST_POINTS = 90_000
MOST_ANSWERS = 60_000
MOST_ITEMS = 3000
FEW_PEOPLE = 12  # whose own curves are drawn, in place of the range of the middle 80 %
N_TIMES = 40  # of the cohort's curve, and of people's quantiles
ABILITY_POINTS = 41
IDENTITY = BUILT_IN["identity"]


def page_data(fit: Fit, static_comparison: StaticComparison | None) -> dict[str, Any]:
    """Everything that the page shows, by section, as plain lists and dictionaries."""
    people = _sample(np.diff(fit.responses.person_start), MOST_PEOPLE)
    movers, all_changes = _everyones_changes(fit)
    still = constant.is_constant(fit)
    changes = (
        constant.abilities(fit, people) if still else _changes(fit, people, movers, all_changes)
    )
    items = _items(fit)
    heads = headings([*changes["columns"], *items["columns"]])
    return {
        "facts": _facts(fit, people),
        "lead": lead(fit),
        "headline": headline(fit, all_changes),
        "findings": findings_for_all(
            fit,
            static_comparison,
            all_changes,
            (constant.of_the_whole(fit), constant.of_people(fit)) if still else None,
        ),
        "caption": constant.caption() if still else _caption(fit),
        "words": [typographic(sentence) for sentence in findings(fit, static_comparison)[1:]],
        "cautions": [typographic(str(caution)) for caution in _cautions(fit)],
        "health": list(fit.health.remarks),
        "people": _people(fit, people),
        "quantiles": _quantiles(fit, people),
        "means": _means(fit),
        "changes": changes,
        "items": items,
        "headings": heads | constant.HEADINGS if still else heads,
        "wright": _wright(fit, people),
        "priors": _priors(fit),
        "calibration": _calibration(fit, static_comparison),
        "trace": _trace(fit),
        "method": _method(fit),
        "terms": terms(fit.scale.name),
        "cite": how_to_cite(),
    }


def _cautions(fit: Fit) -> list[str]:
    """What to know before believing the page."""
    if fit.converged:
        return list(fit.cautions)
    return [
        f"The fit did NOT converge: the numbers may still move. {option('iterations')} lets it go "
        "on.",
        *fit.cautions,
    ]


def _sample(counts: Ints, most: int) -> Ints:
    """Indices of everyone, or of `most` people spread evenly over their numbers of answers."""
    if counts.size <= most:
        return np.arange(counts.size)
    return np.sort(
        np.argsort(counts, kind="stable")[
            np.linspace(0, counts.size - 1, most).round().astype(np.int64)
        ]
    )


def _rounded(values: Any, digits: int = 3) -> list[Any]:
    """Numbers rounded for JSON, None where there is none."""
    return [
        None if v is None or v != v else v
        for v in np.round(np.asarray(values, dtype=np.float64), digits).tolist()
    ]


def _times(fit: Fit, offsets: Array) -> list[Any]:
    """Times for charts: milliseconds since 1970 for stamps, else numbers."""
    shown = np.asarray(fit.from_clock(offsets))
    if shown.dtype.kind == "M":
        return [int(t) for t in shown.astype("datetime64[ms]").astype(np.int64)]
    span = max(float(np.ptp(fit.responses.clock_times)), 1e-300)
    return _rounded(shown, max(0, int(np.ceil(4 - np.log10(span)))))


def _facts(fit: Fit, people: Ints) -> dict[str, Any]:
    """Single numbers and titles."""
    r = fit.responses
    dates = r.axis.stamps and r.clock == "calendar"
    unit = "" if dates or r.unit == UNSTATED else r.unit
    ends = _times(fit, np.array(fit.time_range))
    return {
        "people": int(r.people.size),
        "shown": int(people.size),
        "dates": dates,
        "time_title": ""
        if dates
        else (f"{unit} since each one's start" if r.clock == "person" else unit or "time"),
        "still": constant.is_constant(fit),
        "few": int(r.people.size) <= FEW_PEOPLE,
        "span": max(ends[1] - ends[0], 1e-9),
        "level": LEVEL,
        "groups": list(map(str, r.groups)),
        "converged": fit.converged,
        "iterations": len(fit.trace),
    }


def _caption(fit: Fit) -> Phrase:
    """What the first picture shows."""
    band: tuple[str, str] = (f"{LEVEL:.0%} band".replace("%", " %"), "band")
    spread = (
        "each person is a grey line"
        if fit.responses.people.size <= FEW_PEOPLE
        else "grey is where the middle 80 % of people are, of those between their first and last "
        "answer (where there are at least five)"
    )
    if not fit.has_cohort:
        return [("Ability", "ability"), f" over time; {spread}."]
    whose = "each group" if fit.responses.groups else "everyone"
    return [
        (f"Mean ability of {whose}", "mean"),
        " over time with its ",
        band,
        f"; {spread}.",
    ]


def _people(fit: Fit, people: Ints) -> dict[str, Any]:
    """Curves of the people shown, each over its own answers, and the answers that moved it."""
    first, last = (edge[people] for edge in fit.sites.layout.spans)
    points = int(np.clip(MOST_POINTS // people.size, 12, 60))
    offsets = first[:, None] + (last - first)[:, None] * np.linspace(0.0, 1.0, points)
    mix = fit.marginals(np.repeat(people, points), offsets.ravel())
    low, high = mix.quantiles(np.array([0.5 - LEVEL / 2, 0.5 + LEVEL / 2]), IDENTITY)
    mean = mix.mean(IDENTITY)
    labels = fit.responses.people.tolist()
    curves = [
        {
            "t": _times(fit, offsets[k]),
            "m": _rounded(mean[at], 2),
            "l": _rounded(low[at], 2),
            "u": _rounded(high[at], 2),
        }
        for k, at in ((k, slice(k * points, (k + 1) * points)) for k in range(people.size))
    ]
    return {
        "names": [str(labels[p]) for p in people],
        "n": np.diff(fit.responses.person_start)[people].tolist(),
        "curves": curves,
        "answers": _answers(fit, people),
    }


def _answers(fit: Fit, people: Ints) -> list[dict[str, Any]]:
    """The answers of each person that moved the curve most: time, item, response, movement."""
    r = fit.responses
    rows = np.flatnonzero(np.isin(r.person, people))
    without = fit.leave_one_out[1]
    here = fit.marginals(r.person[rows], r.clock_times[rows]).mean(IDENTITY)
    influence = np.zeros(len(r))
    influence[rows] = here - without[rows]
    each = int(np.clip(MOST_ANSWERS // people.size, 5, 200))
    out = []
    for p in people:
        mine = np.arange(r.person_start[p], r.person_start[p + 1])
        if mine.size > each:
            mine = np.sort(mine[np.argsort(-np.abs(influence[mine]), kind="stable")[:each]])
        out.append(
            {
                "t": _times(fit, r.clock_times[mine]),
                "i": r.item[mine].tolist(),
                "y": _rounded(r.resp[mine], 4),
                "d": _rounded(influence[mine], 2),
            }
        )
    return out


def _quantiles(fit: Fit, people: Ints) -> dict[str, Any]:
    """Quantiles over people of the mean ability, at even times.

    Of the people between their first and their last answer.
    """
    times = fit.responses.clock_times
    at = np.linspace(times.min(), times.max(), N_TIMES)
    first, last = (edge[people] for edge in fit.sites.layout.spans)
    table: dict[str, list[Any]] = {"t": _times(fit, at), "low": [], "mid": [], "high": [], "n": []}
    active = (first[:, None] <= at) & (at <= last[:, None])
    who, when = np.nonzero(active)
    mean = np.full(active.shape, np.nan)
    if who.size:
        mean[who, when] = fit.marginals(people[who], at[when]).mean(IDENTITY)
    for k in range(at.size):
        present = mean[active[:, k], k]
        low, mid, high = (
            np.quantile(present, (0.1, 0.5, 0.9)) if present.size >= 5 else (np.nan,) * 3
        )
        for name, value in (("low", low), ("mid", mid), ("high", high)):
            table[name] += _rounded([value])
        table["n"].append(int(present.size))
    return table


def _means(fit: Fit) -> list[dict[str, Any]]:
    """The cohort's curve, or one for each group, with the band of the mean; empty without one."""
    if not fit.has_cohort:
        return []
    at = np.linspace(*fit.time_range, N_TIMES)
    frame = as_frame(fit.cohort(fit.from_clock(at), level=LEVEL))
    n_curves = len(frame) // N_TIMES
    names = frame["group"].to_list() if "group" in frame.columns else ["everyone"] * len(frame)
    columns = [_rounded(frame[name].to_numpy()) for name in ("mean", "lower", "upper")]
    return [
        {"group": str(group), "t": t, "m": m, "l": low, "u": high}
        for group, t, m, low, high in zip(names, _times(fit, at) * n_curves, *columns, strict=True)
    ]


def _everyones_changes(fit: Fit) -> tuple[Ints, Changes | None]:
    """People who answered at more than one time, and their changes from first to last answer."""
    first, last = fit.sites.layout.spans
    movers = np.flatnonzero(last > first)
    if not movers.size:
        return movers, None
    return movers, changes_between_own_times(fit, movers, first[movers], last[movers])


def _changes(fit: Fit, people: Ints, movers: Ints, found: Changes | None) -> dict[str, Any]:
    """Who rose and who fell, between their first and last answer: columns, and rows of people.

    `shown` are positions among the people of the page; those with a single instant are left out.
    """
    at = np.flatnonzero(np.isin(movers, people))
    who = movers[at]
    if found is None or not who.size:
        return {"columns": {}, "shown": [], "bands": [], "note": []}
    labels = fit.responses.people.tolist()
    groups: dict[str, list[Any]] = {}
    if fit.responses.groups:
        names = [*fit.responses.groups, ""]
        groups["group"] = [str(names[g]) for g in fit.group_of(who)]
    edges = found.marginals.quantiles(np.array([0.5 - LEVEL / 2, 0.5 + LEVEL / 2]), IDENTITY)
    end = fit.marginals(who, fit.sites.layout.spans[1][who]).mean(IDENTITY)
    by_cohort = {
        "with the cohort": _rounded(found.cohort[at], 2),
        "beyond it": _rounded((found.mean - found.cohort)[at], 2),
    }
    beside = beside_others(found)[at].tolist()
    if any(beside):
        by_cohort["beside"] = beside
    return {
        "columns": {
            "who": [str(labels[p]) for p in who],
            "change": _rounded(found.mean[at], 2),
            "verdict": verdicts(found.rose[at]),
            **groups,
            "probability": _rounded(found.rose[at], 3),
            "±": _rounded(found.marginals.sd(IDENTITY)[at], 2),
            **(by_cohort if fit.has_cohort else {}),
            "ability": _rounded(end, 2),
        },
        "shown": np.searchsorted(people, who).tolist(),
        "bands": [_rounded(pair, 2) for pair in np.stack([edge[at] for edge in edges], axis=1)],
        "note": [
            ("Change", "change"),
            " of ability from each one's first answer to the last; people.csv has everybody.",
        ],
    }


def _items(fit: Fit) -> dict[str, Any]:
    """The item table with fit statistics, and response functions and information over ability."""
    frame = as_frame(fit.items)
    r = fit.responses
    shown = _items_shown(fit, frame["flag"].to_list())
    found = as_frame(item_fit(fit))
    columns: dict[str, list[Any]] = {}
    for name in _shown_columns(frame):
        values = frame[name].to_list()
        picked = [values[k] for k in shown]
        is_text = name in ("item", "model", "flag")
        as_they_are = [str(v) for v in picked] if is_text else picked
        columns[name] = as_they_are if is_text or name == "n" else _rounded(picked)
    for name in ("infit", "outfit"):
        values = found[name].to_list()
        columns[name] = _rounded([values[k] for k in shown], 2)
    ability = fit.shift + fit.gain * np.linspace(-3.5, 3.5, ABILITY_POINTS)
    z = (ability - fit.shift) / fit.gain
    curves, names, amounts = _response_functions(fit, z, shown)
    information = fit.information_at(ability)[shown]
    labels = [str(label) for label in r.items.tolist()]
    return {
        "columns": columns,
        "ability": _rounded(ability, 2),
        "curves": curves,
        "categories": names,
        "information": [_rounded(row, 3) for row in information],
        "observed": observed_shares(fit, shown),
        "labels": labels,
        "amount": amounts,
        "note": _note_on_items(fit, len(shown), columns.get("flag", [])),
    }


def _note_on_items(fit: Fit, shown: int, flags: list[str]) -> Phrase:
    """How many items there are, how many are flagged, and how many the page holds."""
    total = fit.responses.items.size
    flagged = sum(map(bool, flags))
    note: Phrase = (
        [("Flagged", "flag"), f" items come first: {flagged:,} of {total:,}."]
        if flagged
        else [f"None of the {total:,} items is ", ("flagged", "flag"), "."]
    )
    if shown < total:
        note += [f" The {shown:,} most answered ones are here; items.csv has all."]
    return note


def _shown_columns(frame: Any) -> list[str]:
    """Columns of the item table that a page shows, checks before parameters.

    Left out: what is the same for all items, and intercepts, which say the same as difficulties.
    """
    first = ["item", "flag", "model", "n", "share", "item_rest"]
    same = [name for name in ("flag", "model") if len(set(frame[name].to_list())) == 1]
    rest = [name for name in frame.columns if name not in first and "intercept" not in name]
    return [name for name in first if name in frame.columns and name not in same] + rest


def _items_shown(fit: Fit, flags: list[str]) -> Ints:
    """Numbers of the items on the page, the most answered ones: flagged ones, then the others."""
    number = np.asarray(fit.responses_per_item)
    shown = np.sort(np.argsort(-number, kind="stable")[:MOST_ITEMS])
    is_flagged = np.array([bool(flag) for flag in flags])[shown]
    return np.concatenate([shown[is_flagged], shown[~is_flagged]])


def _response_functions(
    fit: Fit, z: Array, shown: Ints
) -> tuple[list[list[list[float]]], list[list[str]], list[bool]]:
    """Probabilities of each category, or the mean response, of the items shown.

    Returns the curves (item, category, ability), the names of their categories, and whether each
    item's curve is a mean response.
    """
    theta = fit.bank.ability_scale.theta(z)
    block_of, index = fit.bank.index_in_blocks()
    curves = []
    names = []
    amounts = []
    rows = [
        block.model.log_likelihood(block.u, theta)
        if block.model.categorical
        else block.model.expected(block.u, theta, block.values)
        for block in fit.bank.blocks
    ]
    for item in shown:
        block = fit.bank.blocks[int(block_of[item])]
        table = rows[int(block_of[item])][index[item]]
        if block.model.categorical:
            curves.append([_rounded(probability, 3) for probability in np.exp(table)])
            names.append([f"{value:g}" for value in block.values[index[item]]])
        else:
            curves.append([_rounded(table, 3)])
            names.append(["mean response"])
        amounts.append(not block.model.categorical)
    return curves, names, amounts


def _wright(fit: Fit, people: Ints) -> dict[str, Any]:
    """Abilities of people, averaged over their answers, and locations of items, on one scale."""
    found = as_frame(fit.plot.wright_data()).to_arrays()
    is_person = found["what"] == "person"
    shown = found["location"][is_person][people]
    items = found["location"][~is_person & np.isfinite(found["location"])]
    both = np.concatenate([shown, items])
    low = float(both.min())
    high = float(both.max())
    margin = max(0.05, 0.02 * (high - low))
    edges = np.linspace(low - margin, high + margin, 37)  # the same bins for both
    bars = [
        {"what": what, "from": round(float(a), 3), "to": round(float(b), 3), "count": int(n)}
        for what, values in (("people", shown), ("items", items))
        for a, b, n in zip(edges[:-1], edges[1:], np.histogram(values, edges)[0], strict=True)
    ]
    return {"people": _rounded(shown, 2), "items": _rounded(items, 2), "bars": bars}


def _priors(fit: Fit) -> list[dict[str, Any]]:
    """The prior mixture: each kernel with its weight in the population."""
    return [
        {
            "prior": _short(fit, kernel),
            "whole": kernel.describe(),
            "weight": round(float(weight), 4),
        }
        for kernel, weight in zip(fit.kernels, fit.population, strict=True)
    ]


def _short(fit: Fit, kernel: Kernel) -> str:
    """A short description of a prior that is a level and one moving kernel, else the whole one."""
    moving = [
        summand
        for summand in kernel.summands
        if isinstance(summand, BandwidthKernel) and not summand.constant
    ]
    if kernel.static:
        return "constant"
    if len(moving) != 1 or not all(
        isinstance(summand, Level) for summand in kernel.summands if summand is not moving[0]
    ):
        return kernel.describe()
    total = sum(summand.variance for summand in kernel.summands)
    unit = "" if fit.responses.unit == UNSTATED else f" {fit.responses.unit}"
    return (
        f"{1 - moving[0].variance / total:.0%} stays, {moving[0].value_of('bandwidth'):.3g}{unit}"
    )


def _calibration(fit: Fit, static_comparison: StaticComparison | None) -> list[dict[str, Any]]:
    """Predicted against observed mean responses, each answer predicted without itself."""
    out = []
    bins = int(np.clip(len(fit.responses) // 30, 1, 10))
    for name, one in (
        ("moving", fit),
        *((("constant", static_comparison.fit),) if static_comparison is not None else ()),
    ):
        table = as_frame(one.plot.calibration_data(bins))
        out += [
            {"abilities": name, **{key: round(value, 4) for key, value in row.items()}}
            for row in table.rows()
        ]
    return out


def _trace(fit: Fit) -> list[dict[str, Any]]:
    """Change and log evidence at each iteration of EM."""
    return [
        {
            "iteration": record.iteration,
            "stage": record.stage,
            "change": float(f"{max(record.change, 1e-12):.3g}"),
            "log_evidence": round(record.log_evidence, 2),
        }
        for record in fit.trace
    ]


def _method(fit: Fit) -> list[str]:
    """The method, the options and the versions, so that the fit can be repeated."""
    import numba
    import scipy

    stated = {
        key: value
        for key, value in fit.options.items()
        if key not in FINDINGS and value not in (None, "", False)
    }
    options = ", ".join(f"{key} {value}" for key, value in stated.items())
    models = ", ".join(sorted({block.model.name for block in fit.bank.blocks}))
    about = "" if not fit.has_cohort else " about the mean of its cohort, which is learned"
    return [
        f"Dynamic item response theory: every person's ability is a Gaussian-process curve in "
        f"continuous time{about}, items ({models}) are "
        "learned with them by EM, and each answer enters by expectation propagation (grafting), "
        "so that bands count what is unknown "
        "about the curve.",
        "Bandwidths and shares of variance are not picked: their distribution over the population "
        "is learned, and every person's band "
        "averages over it.",
        f"Bands are {LEVEL:.0%} credible bands of the curve, given the items. Predictions called "
        f"'without itself' leave the predicted "
        "answer out of the person's curve, not out of the items.",
        f"Options that were set: {options}.",
        f"dynaesti {__version__}, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"SciPy {scipy.__version__}, "
        f"Numba {numba.__version__}.",
    ]
