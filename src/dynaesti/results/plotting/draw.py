"""Figures from arrays, with matplotlib."""

from typing import Any

import numpy as np

from dynaesti.errors import MissingExtraError
from dynaesti.tables import as_frame

# distinct in grey and to the colour-blind
INK = "#0b5394"
BAND = "#9fc5e8"
POINT = "#444444"


def plot_curve(frame: Any, observed: Any, link: str, level: float, ax: Any = None) -> Any:
    """A curve's median, its band and its emissions. Yes/no answers are ticks at the edges."""
    if ax is None:
        ax = new_axes()
    table = as_frame(frame)
    time, median, lower, upper = (
        np.asarray(table[name].to_numpy()) for name in ("time", "median", "lower", "upper")
    )
    ax.fill_between(
        time, lower, upper, color=BAND, alpha=0.6, linewidth=0, label=f"{level:.0%} band"
    )
    ax.plot(time, median, color=INK, linewidth=2, label="median")
    values = np.asarray(as_frame(observed)["value"].to_numpy())
    if values.size:
        votes = np.isin(values, (0, 1)).all() and link in ("probit", "logit")
        marker = (
            {"marker": "|", "markersize": 7}
            if votes
            else {"marker": "o", "markersize": 3.5, "markeredgewidth": 0}
        )
        ax.plot(
            np.asarray(as_frame(observed)["time"].to_numpy()),
            values,
            linestyle="none",
            color=POINT,
            alpha=0.6,
            label="emissions",
            **marker,
        )
    time_axis(ax, time)
    ax.set_ylabel("curve" if link == "identity" else f"curve ({link} link)")
    return finished(ax)


COLOURS = (
    "#0b5394",
    "#b45f06",
    "#38761d",
    "#990000",
    "#674ea7",
    "#7f6000",
    "#0c8599",
    "#a64d79",
)  # apart in lightness too


MOST_PANELS = 24


def plot_groups(frame: Any, level: float) -> Any:
    """Curves of groups, each in a panel of its own, on common axes; at most `MOST_PANELS`.

    Parameters
    ----------
    frame : frame
        Columns group, time, median, lower, upper.
    level : float
        Probability of the band.
    """
    table = as_frame(frame)
    group = np.asarray(table["group"].to_numpy())
    labels = list(dict.fromkeys(group.tolist()))
    shown = labels[:MOST_PANELS]
    wide = min(4, len(shown))
    panels = new_panels(-(-len(shown) // wide), wide)
    for label, ax in zip(shown, panels, strict=False):
        mine = np.flatnonzero(group == label)
        time, median, lower, upper = (
            np.asarray(table[name].to_numpy())[mine]
            for name in ("time", "median", "lower", "upper")
        )
        ax.fill_between(time, lower, upper, color=BAND, alpha=0.6, linewidth=0)
        ax.plot(time, median, color=INK, linewidth=2)
        ax.set_title(str(label), fontsize=10)
        time_axis(ax, time)
        if shown.index(label) + wide < len(shown):  # the one below has the labels
            ax.set_xlabel("")
        else:
            ax.tick_params(labelbottom=True)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    for ax in panels[len(shown) :]:
        ax.set_visible(False)
    more = (
        f"; {len(labels) - len(shown)} more groups are not drawn"
        if len(labels) > len(shown)
        else ""
    )
    panels[0].figure.suptitle(f"median and {level:.0%} band{more}", fontsize=10)
    return panels[0]


def plot_information_over_time(frame: Any, ax: Any = None) -> Any:
    """A map of information over time and ability."""
    ax = new_axes() if ax is None else ax
    table = as_frame(frame)
    starts, ends, ability, information = (
        np.asarray(table[name].to_numpy()) for name in ("from", "until", "ability", "information")
    )
    points = int(np.argmax(starts != starts[0])) or starts.size
    edges = np.append(starts[::points], ends[-1])
    half = 0.5 * (ability[1] - ability[0])
    rows = np.append(ability[:points] - half, ability[points - 1] + half)
    mesh = ax.pcolormesh(
        edges, rows, information.reshape(-1, points).T, cmap="cividis", rasterized=True
    )
    ax.figure.colorbar(mesh, ax=ax, label="information per person answering")
    time_axis(ax, edges)
    ax.set_ylabel("ability")
    return ax


def plot_wright(frame: Any, ax: Any = None) -> Any:
    """People above, items below, on one scale."""
    ax = new_axes() if ax is None else ax
    table = as_frame(frame)
    what, location = (np.asarray(table[name].to_numpy()) for name in ("what", "location"))
    people = location[what == "person"]
    items = location[(what == "item") & np.isfinite(location)]
    both = np.concatenate([people, items])
    edges = np.linspace(both.min(), both.max(), 37)
    up, _ = np.histogram(people, edges)
    down, _ = np.histogram(items, edges)
    width = edges[1] - edges[0]
    centre = 0.5 * (edges[1:] + edges[:-1])
    ax.bar(
        centre,
        up / max(up.max(), 1),
        width=0.92 * width,
        color=COLOURS[0],
        label=f"{people.size:,} people",
    )
    ax.bar(
        centre,
        -down / max(down.max(), 1),
        width=0.92 * width,
        color=COLOURS[1],
        label=f"{items.size:,} items",
    )
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set_yticks([])
    ax.set_xlabel("ability, and location of items")
    return finished(ax)


def plot_calibration(frame: Any, ax: Any = None) -> Any:
    """Observed against predicted mean responses with two standard errors."""
    ax = new_axes() if ax is None else ax
    table = as_frame(frame)
    predicted, observed, se = (
        np.asarray(table[name].to_numpy()) for name in ("predicted", "observed", "se")
    )
    ends = [min(predicted.min(), observed.min()), max(predicted.max(), observed.max())]
    ax.plot(ends, ends, color=POINT, linestyle="--", linewidth=1, label="right on average")
    ax.errorbar(
        predicted,
        observed,
        2 * se,
        linestyle="none",
        marker="o",
        color=INK,
        capsize=2,
        label="answers in ten groups, ± 2 se",
    )
    ax.set_xlabel("predicted mean response")
    ax.set_ylabel("observed")
    return finished(ax)


def plot_item(frame: Any, item: Any, ax: Any = None) -> Any:
    """Chances of an item's categories over ability."""
    ax = new_axes() if ax is None else ax
    table = as_frame(frame)
    names = [name for name in table.columns if name != "ability"]
    for k, name in enumerate(names):
        chance = table[name].to_numpy()
        colour = COLOURS[k % len(COLOURS)]
        ax.plot(table["ability"].to_numpy(), chance, color=colour, linewidth=2, label=name)
    ax.set_xlabel("ability")
    ax.set_ylabel("expected response" if names == ["expected"] else "chance of each response")
    ax.set_title(f"item {item}")
    if names != ["expected"]:
        ax.set_ylim(0, 1)
        finished(ax).legend(frameon=False, title="response")
        return ax
    return finished(ax)


def plot_item_fit(frame: Any, item: Any, ax: Any = None) -> Any:
    """Mean responses to an item in groups of ability, beside those that the fit expects."""
    ax = new_axes() if ax is None else ax
    table = as_frame(frame)
    ability, observed, expected, se = (
        np.asarray(table[name].to_numpy()) for name in ("ability", "observed", "expected", "se")
    )
    ax.plot(ability, expected, color=INK, linewidth=2, label="expected")
    ax.errorbar(
        ability,
        observed,
        2 * se,
        linestyle="none",
        marker="o",
        color=POINT,
        capsize=2,
        label="observed, ± 2 se",
    )
    ax.set_xlabel("ability, as known without the response")
    ax.set_ylabel("mean response")
    ax.set_title(f"item {item}")
    return finished(ax)


def plot_information(frame: Any, ax: Any = None) -> Any:
    """Test information over ability."""
    ax = new_axes() if ax is None else ax
    table = as_frame(frame)
    ax.plot(
        table["ability"].to_numpy(),
        table["information"].to_numpy(),
        color=INK,
        linewidth=2,
        label="all items",
    )
    ax.set_xlabel("ability")
    ax.set_ylabel("information")
    ax.set_ylim(bottom=0)
    return finished(ax)


FLAGGED = "#990000"


def plot_item_effects(frame: Any, name: str, ax: Any = None, most: int = 40) -> Any:
    """Effects that single items have, with their intervals, the clearest first; flagged in red.

    Parameters
    ----------
    frame : frame
        Columns item, lower, upper, p, flag, and that of the effects; those of groups too.
    name : str
        Column of the effects.
    ax : matplotlib axes, optional
    most : int, default 40
        Largest number of rows.
    """
    table = as_frame(frame)
    columns = {key: np.asarray(table[key].to_numpy()) for key in table.columns}
    known = np.flatnonzero(np.isfinite(columns[name]))
    order = known[np.argsort(columns["p"][known], kind="stable")][:most]
    height = 1.2 + 0.2 * order.size
    ax = new_axes(height) if ax is None else ax
    rows = np.arange(order.size)
    several = "group" in columns and len(set(columns["group"].tolist())) > 1
    labels = [
        f"{columns['item'][k]} · {columns['group'][k]}" if several else str(columns["item"][k])
        for k in order
    ]
    for flagged, colour, said in ((False, INK, "not flagged"), (True, FLAGGED, "flagged")):
        mine = columns["flag"][order].astype(bool) == flagged
        if mine.any():
            at = order[mine]
            ends = np.stack(
                [columns[name][at] - columns["lower"][at], columns["upper"][at] - columns[name][at]]
            )
            ax.errorbar(
                columns[name][at],
                rows[mine],
                xerr=ends,
                fmt="o",
                color=colour,
                markersize=4,
                linewidth=1.2,
                label=said,
            )
    ax.axvline(0.0, color=POINT, linewidth=0.8)
    ax.set_yticks(rows, labels)
    ax.invert_yaxis()
    whom = ""
    if "group" in columns:
        groups = " or ".join(dict.fromkeys(map(str, columns["group"].tolist())))
        whom = f" for {groups} than for {columns['reference'][0]}"
    ax.set_xlabel(f"easier{whom}, on the scale of abilities (95 % interval)")
    finished(ax).legend(frameon=False, loc="lower right")
    return ax


def plot_drift_map(frame: Any, ax: Any = None) -> Any:
    """Items by time, coloured by how much easier they were than on average."""
    table = as_frame(frame)
    items = np.asarray(table["item"].to_numpy())
    names = list(dict.fromkeys(items.tolist()))
    values = np.asarray(table["easier"].to_numpy()).reshape(len(names), -1)
    times = np.asarray(table["time"].to_numpy())[: values.shape[1]]
    flags = np.asarray(table["flag"].to_numpy()).reshape(len(names), -1)[:, 0]
    ax = new_axes(1.4 + 0.22 * len(names)) if ax is None else ax
    reach = float(np.nanmax(np.abs(values))) if np.isfinite(values).any() else 1.0
    drawn = ax.pcolormesh(
        times,
        np.arange(len(names)),
        values,
        cmap="RdBu",
        vmin=-reach,
        vmax=reach,
        shading="nearest",
    )
    ax.set_yticks(np.arange(len(names)), [str(name) for name in names])
    for label, flagged in zip(ax.get_yticklabels(), flags, strict=True):
        label.set_color(FLAGGED if flagged else POINT)
        label.set_fontweight("bold" if flagged else "normal")
    ax.invert_yaxis()
    time_axis(ax, times)
    ax.set_ylabel("item (flagged ones in bold)")
    ax.figure.colorbar(drawn, ax=ax, label="easier than on average")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax


LONG = 4.0  # span of times from which on their labels are whole numbers


def time_axis(ax: Any, times: Any) -> None:
    """Label the axis of times; dates have few and short labels, years no decimals."""
    ax.set_xlabel("time")
    if np.asarray(times).dtype.kind != "M" and np.ptp(times) >= LONG:
        from matplotlib.ticker import MaxNLocator

        ax.xaxis.set_major_locator(MaxNLocator(9, integer=True, steps=[1, 2, 5, 10]))
    if np.asarray(times).dtype.kind == "M":
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator: Any = AutoDateLocator(maxticks=8)  # type: ignore[no-untyped-call]
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def finished(ax: Any) -> Any:
    """Legend without a frame, no box around the axes."""
    ax.margins(x=0.01)
    ax.legend(frameon=False)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax


def new_axes(height: float = 4.2) -> Any:
    """New axes of a figure."""
    return pyplot().subplots(figsize=(7.2, height), layout="constrained")[1]


def new_panels(rows: int, columns: int) -> Any:
    """New axes of a figure with several panels, (rows · columns,), on common scales."""
    size = (max(7.2, 2.6 * columns), max(3.2, 2.2 * rows))
    grid = pyplot().subplots(
        rows, columns, figsize=size, sharex=True, sharey=True, squeeze=False, layout="constrained"
    )[1]
    return grid.ravel()


def pyplot() -> Any:
    """Matplotlib, or what brings it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingExtraError(
            "plotting needs matplotlib: pip install 'dynaesti[plot]'"
        ) from error
    return plt
