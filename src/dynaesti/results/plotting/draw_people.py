"""Figures of people over time, with matplotlib."""

from typing import Any

import numpy as np

from dynaesti.results.plotting.draw import (
    BAND,
    COLOURS,
    FLAGGED,
    INK,
    POINT,
    finished,
    new_axes,
    time_axis,
)
from dynaesti.tables import as_frame


def columns_of(frame: Any, *names: str) -> list[Any]:
    """Columns of a frame of any library as arrays."""
    table = as_frame(frame)
    return [np.asarray(table[name].to_numpy()) for name in names]


def band_and_line(
    ax: Any, time: Any, line: Any, lower: Any, upper: Any, colour: str, label: str
) -> None:
    """A line within its band."""
    ax.fill_between(time, lower, upper, color=colour, alpha=0.18, linewidth=0)
    ax.plot(time, line, color=colour, linewidth=2, label=label)


def plot_curves(frame: Any, level: float, ax: Any = None, answers: Any = None) -> Any:
    """Abilities over time of several people, each with a band.

    Answers as triangles, filled by how good they were.
    """
    ax = new_axes() if ax is None else ax
    table = as_frame(frame)
    ids = np.asarray(table["id"].to_numpy())
    for k, label in enumerate(dict.fromkeys(ids.tolist())):
        mine = np.flatnonzero(ids == label)
        time, mean, lower, upper = (
            np.asarray(table[name].to_numpy())[mine] for name in ("time", "mean", "lower", "upper")
        )
        colour = COLOURS[k % len(COLOURS)]
        ax.fill_between(time, lower, upper, color=colour, alpha=0.18, linewidth=0)
        ax.plot(time, mean, color=colour, linewidth=2, label=str(label))
        if answers is not None:
            _mark_answers(ax, as_frame(answers), label, colour)
    time_axis(ax, table["time"].to_numpy())
    ax.set_ylabel(f"ability ({level:.0%} bands)")
    return finished(ax)


MOST_MARKS = 60  # answers of a person that are marked beside the curve; more stand at the edges


def _mark_answers(ax: Any, answers: Any, label: Any, colour: str) -> None:
    """Better answers above the curve, worse ones below; many of them as ticks at the edges."""
    mine = np.flatnonzero(np.asarray(answers["id"].to_numpy()) == label)
    time, mean, share = (
        np.asarray(answers[name].to_numpy())[mine] for name in ("time", "mean", "share")
    )
    many = mine.size > MOST_MARKS
    for good, marker in ((True, "^"), (False, "v")):
        at = (share >= 0.5) == good
        edge = np.full(int(at.sum()), 0.985 if good else 0.015)
        ax.plot(
            time[at],
            edge if many else mean[at] + (0.12 if good else -0.12),
            transform=ax.get_xaxis_transform() if many else ax.transData,
            linestyle="none",
            marker="|" if many else marker,
            markersize=8 if many else 4,
            markeredgewidth=0.8 if many else 0,
            color=colour,
            alpha=0.35 if many else 0.55,
        )


def plot_many(frame: Any, highlight: list[Any], ax: Any = None) -> Any:
    """Everyone's curve in grey, the median over time, and some in colour."""
    from matplotlib.collections import LineCollection
    from matplotlib.dates import date2num

    ax = new_axes() if ax is None else ax
    table = as_frame(frame)
    ids, time, mean = (np.asarray(table[name].to_numpy()) for name in ("id", "time", "mean"))
    x = date2num(time) if time.dtype.kind == "M" else time  # type: ignore[no-untyped-call]
    starts = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
    ends = np.append(starts[1:], ids.size)
    if time.dtype.kind == "M":
        ax.xaxis_date()
    segments = [np.column_stack([x[a:b], mean[a:b]]) for a, b in zip(starts, ends, strict=True)]
    ax.add_collection(LineCollection(segments, colors=POINT, linewidths=0.5, alpha=0.25))
    edges = np.linspace(x.min(), x.max(), 41)
    cell = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, 39)
    middle = [np.median(mean[cell == k]) if np.any(cell == k) else np.nan for k in range(40)]
    ax.plot(0.5 * (edges[1:] + edges[:-1]), middle, color="black", linewidth=2, label="median")
    for k, label in enumerate(highlight):
        at = ids == label
        ax.plot(x[at], mean[at], color=COLOURS[k % len(COLOURS)], linewidth=2, label=str(label))
    ax.autoscale_view()
    time_axis(ax, time)
    ax.set_ylabel("ability")
    return finished(ax)


def plot_cohort(frame: Any, level: float, ax: Any = None) -> Any:
    """The population's mean over time with its band, or that of each group."""
    ax = new_axes() if ax is None else ax
    table = as_frame(frame)
    time, mean, lower, upper = columns_of(table, "time", "mean", "lower", "upper")
    groups = columns_of(table, "group")[0] if "group" in table.columns else np.full(len(time), "")
    for k, label in enumerate(dict.fromkeys(groups.tolist())):
        mine = groups == label
        name = str(label) or f"mean of all, {level:.0%} band"
        colour = COLOURS[k % len(COLOURS)]
        band_and_line(ax, time[mine], mean[mine], lower[mine], upper[mine], colour, name)
    time_axis(ax, time)
    ax.set_ylabel(f"mean ability ({level:.0%} bands)")
    return finished(ax)


def plot_filtered(frame: Any, level: float, ax: Any = None) -> Any:
    """What was known at each time beside what is known now."""
    ax = new_axes() if ax is None else ax
    names = ("smoothed: by all answers", "filtered: by those until then")
    for kind, colour, label in zip(("smoothed", "filtered"), COLOURS, names, strict=False):
        time, mean, lower, upper = columns_of(frame, "time", kind, f"{kind}_lower", f"{kind}_upper")
        band_and_line(ax, time, mean, lower, upper, colour, label)
    time_axis(ax, time)
    ax.set_ylabel(f"ability ({level:.0%} bands)")
    return finished(ax)


def plot_fan(frame: Any, ax: Any = None) -> Any:
    """A curve in bands of several probabilities, the likeliest darkest."""
    ax = new_axes() if ax is None else ax
    time, median, level, lower, upper = columns_of(
        frame, "time", "median", "level", "lower", "upper"
    )
    for value in sorted(set(level.tolist()), reverse=True):
        mine = level == value
        ax.fill_between(
            time[mine],
            lower[mine],
            upper[mine],
            color=INK,
            alpha=0.2,
            linewidth=0,
            label=f"{value:.0%} band",
        )
    ax.plot(time[mine], median[mine], color=INK, linewidth=2, label="median")
    time_axis(ax, time)
    ax.set_ylabel("ability")
    return finished(ax)


def plot_influence(curve: Any, frame: Any, ax: Any = None) -> Any:
    """A curve, and on it a mark for each observation, as large as it moves the curve there."""
    ax = new_axes() if ax is None else ax
    time, median, lower, upper = columns_of(curve, "time", "median", "lower", "upper")
    ax.fill_between(time, lower, upper, color=BAND, alpha=0.5, linewidth=0)
    ax.plot(time, median, color=INK, linewidth=2, label="median")
    at, height, shift = columns_of(frame, "time", "median", "shift_in_sd")
    largest = max(float(np.abs(shift).max(initial=0.0)), 1e-12)
    for up, colour, said in ((True, COLOURS[2], "up"), (False, FLAGGED, "down")):
        mine = (shift > 0) == up
        size = 4 + 130 * np.abs(shift[mine]) / largest
        ax.scatter(
            at[mine],
            height[mine],
            s=size,
            color=colour,
            alpha=0.45,
            linewidth=0,
            label=f"pulls {said} (largest: by {largest:.2g} sd)" if up else f"pulls {said}",
        )
    time_axis(ax, time)
    ax.set_ylabel("curve")
    return finished(ax)
