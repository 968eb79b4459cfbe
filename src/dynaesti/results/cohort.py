"""The cohort's curve and its groups' as frames, and everyone's change between two times."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr, ndtri

from dynaesti.core import Array, Ints, as_vector, check_size
from dynaesti.data import time_text
from dynaesti.errors import InputError, option
from dynaesti.inference import Marginals, check_level
from dynaesti.model import Cohort
from dynaesti.results.frames import IDENTITY, band, band_columns
from dynaesti.results.latent import latent_changes

if TYPE_CHECKING:
    from dynaesti.results.fit import Fit
    from dynaesti.results.fit_base import FitBase

MOST_PAIRS = 3  # of groups that are compared in sentences
POINTS = 50  # of the cohort's curve, unless times are asked for
NO_MOVE = 1e-100  # sd of a change below which nothing can have moved


def cohort_of(fit: FitBase) -> Cohort:
    """The cohort of a fit; an error where it has none."""
    if fit.priors.cohort is None or not fit.priors.cohort.has_curve:
        why = fit.options.get("cohort_left_out") or f"{option('cohort', 'learn')} learns it."
        raise InputError(
            f"this fit has no cohort, so its population's mean is 0 at all times. {why}"
        )
    return fit.priors.cohort


def cohort_times(fit: FitBase, at: Any) -> Array:
    """Times on the fit's clock at which the cohort is asked for; by default, over all the data."""
    if at is None:
        times = np.linspace(*fit.time_range, POINTS)
        shown = fit.from_clock(times)
        if shown.dtype.kind != "M":
            return times
        # dates that can be read: whole days where there are as many, else whole seconds
        unit = "D" if shown[-1] - shown[0] >= np.timedelta64(POINTS, "D") else "s"
        return fit.to_clock(shown.astype(f"datetime64[{unit}]").astype(shown.dtype))
    return fit.to_clock(at)


def cohort_columns(fit: FitBase, at: Any, level: float) -> dict[str, Any]:
    """Mean ability of the cohort, or of each group, with the band of the mean itself."""
    cohort = cohort_of(fit)
    offsets = cohort_times(fit, at)
    n_groups = cohort.n_groups
    check_size(offsets.size * n_groups, "at")
    group = np.repeat(np.arange(n_groups), offsets.size)
    times = np.tile(offsets, n_groups)
    keys: dict[str, Any] = {}
    if cohort.groups:
        keys["group"] = [cohort.groups[g] for g in group]
    keys["time"] = fit.from_clock(times)
    means = fit.shift + fit.gain * cohort.mean(times, group)
    sds = fit.gain * np.sqrt(np.maximum(cohort.variance(times, group), 0.0))
    if cohort.covariance is None:  # standard errors were not computed
        sds = np.full(times.size, np.nan)
    low, high = (sds * ndtri(q) for q in band(level))
    return {**keys, "mean": means, "sd": sds, "lower": means + low, "upper": means + high}


def group_differences(fit: FitBase, t0: Any, t1: Any, level: float) -> dict[str, Any]:
    """Differences of groups in level at two times and in growth between them, pair by pair."""
    check_level(level)
    cohort = cohort_of(fit)
    if len(cohort.groups) < 2:
        there = f"one group only, {cohort.groups[0]!r}" if cohort.groups else "no groups"
        raise InputError(
            f"compare_groups: this fit has {there}; fit with {option('groups', 'column')}"
        )
    check_errors(cohort, "compare_groups")
    ends = two_times(fit, t0, t1)
    rows: list[tuple[Any, ...]] = []
    beyond = float(ndtri(0.5 + level / 2))
    for g, h in combinations(range(cohort.n_groups), 2):
        contrasts = {
            f"level at {time_text(t0)}": np.array([1.0, 0.0]),
            f"level at {time_text(t1)}": np.array([0.0, 1.0]),
            "growth": np.array([-1.0, 1.0]),
        }
        group = np.repeat([g, h], 2)
        for what, signs in contrasts.items():
            both = np.append(signs, -signs)
            times = np.tile(ends, 2)
            difference = fit.gain * float(both @ cohort.mean(times, group))
            se = fit.gain * float(np.sqrt(cohort.variance_of(times, group, both)))
            if cohort.loses(times, group, both):
                difference = se = float("nan")  # the items could explain it as well
            rows.append(
                (
                    cohort.groups[g],
                    cohort.groups[h],
                    what,
                    difference,
                    se,
                    difference - beyond * se,
                    difference + beyond * se,
                    float(ndtr(difference / se)),
                )
            )
    names = ("group", "other", "what", "difference", "se", "lower", "upper", "probability")
    return dict(zip(names, (list(column) for column in zip(*rows, strict=True)), strict=True))


def check_errors(cohort: Cohort, asked: str) -> None:
    """Refuse a test where standard errors were not computed."""
    if cohort.covariance is None:
        raise InputError(
            f"{asked}: standard errors were not computed; fit with "
            f"{option('standard_errors', True)}"
        )


def growth_columns(fit: FitBase, t0: Any, t1: Any, level: float) -> dict[str, Any]:
    """How much the cohort, or each group, grew between two times, as the data alone have it."""
    check_level(level)
    cohort = cohort_of(fit).unshrunk
    check_errors(cohort, "growth")
    ends = two_times(fit, t0, t1)
    signs = np.array([-1.0, 1.0])
    beyond = float(ndtri(0.5 + level / 2))
    rows: list[tuple[float, ...]] = []
    for g in range(cohort.n_groups):
        group = np.full(2, g)
        grown = fit.gain * float(signs @ cohort.mean(ends, group))
        se = fit.gain * float(np.sqrt(cohort.variance_of(ends, group, signs)))
        if cohort.loses(ends, group, signs):
            grown = se = float("nan")  # the items could explain it as well
        rows.append((grown, se, grown - beyond * se, grown + beyond * se, float(ndtr(grown / se))))
    keys: dict[str, Any] = {"group": list(cohort.groups)} if cohort.groups else {}
    names = ("growth", "se", "lower", "upper", "probability")
    return keys | dict(
        zip(names, (list(column) for column in zip(*rows, strict=True)), strict=True)
    )


@dataclass(frozen=True)
class CohortMove:
    """How the mean of the cohort, or of a group, moved over all the data.

    `group` is None for the cohort; `before` and `after` are its mean then, `se` the standard error
    of the move, NaN where none was computed.
    """

    group: Any
    before: float
    after: float
    se: float

    @property
    def move(self) -> float:
        """By how much the mean rose."""
        return self.after - self.before

    @property
    def is_clear(self) -> bool:
        """Whether the move is more than chance, at 95 %."""
        return abs(self.move) > float(ndtri(0.975)) * self.se  # False where the error is NaN


def cohort_moves(fit: FitBase) -> list[CohortMove]:
    """How the cohort, or each group, moved over all the data; none where it cannot be seen."""
    cohort = fit.priors.cohort
    if cohort is None:
        return []
    ends = np.array(fit.time_range)
    signs = np.array([-1.0, 1.0])
    found = []
    for g, name in enumerate(cohort.groups or (None,)):
        group = np.full(2, g)
        if cohort.loses(ends, group, signs):
            continue  # relative to a common curve that cannot be seen
        before, after = (fit.shift + fit.gain * cohort.mean(ends, group)).tolist()
        se = float("nan")
        if cohort.covariance is not None:
            se = fit.gain * float(np.sqrt(cohort.variance_of(ends, group, signs)))
        found.append(CohortMove(name, before, after, se))
    return found


def cohort_sentences(fit: FitBase) -> list[str]:
    """How the cohort moved, and how groups differ, in sentences; ± is one standard error."""
    cohort = fit.priors.cohort
    if cohort is None:
        return []
    t0, t1 = fit.from_clock(np.array(fit.time_range))
    span = f"from {time_text(t0)} to {time_text(t1)}"
    words = []
    for found in cohort_moves(fit):
        verb = "rose" if found.move >= 0 else "fell"
        error = "" if np.isnan(found.se) else f" (± {found.se:.2f})"
        name = "The cohort" if found.group is None else found.group
        words.append(f"{name} {verb} by {abs(found.move):.2f}{error} {span}.")
    if len(cohort.groups) < 2 or cohort.covariance is None:
        return words
    table = group_differences(fit, t0, t1, 0.95)
    growth = [k for k, what in enumerate(table["what"]) if what == "growth"]
    for k in growth[:MOST_PAIRS]:
        apart, low, high = (table[name][k] for name in ("difference", "lower", "upper"))
        if apart == apart:
            more = "more" if apart >= 0 else "less"
            words.append(
                f"{table['group'][k]} grew by {abs(apart):.2f} {more} than {table['other'][k]} "
                f"(95 % interval of the difference {low:+.2f} to {high:+.2f})."
            )
    return words


def two_times(fit: FitBase, t0: Any, t1: Any) -> Array:
    """Two different times on the fit's clock."""
    ends = fit.to_clock([t0, t1])
    if ends[0] == ends[1]:
        raise InputError(f"t0, t1: both are {time_text(t0)}; a change needs two times")
    return ends


@dataclass(frozen=True)
class Changes:
    """How abilities changed between two times, on the reported scale; (n_people,) each."""

    marginals: Marginals
    cohort: Array  # the part of the person's cohort

    @property
    def mean(self) -> Array:
        """Mean change."""
        return self.marginals.mean(IDENTITY)

    @property
    def rose(self) -> Array:
        """Probability that ability rose."""
        mix = self.marginals
        return np.asarray((mix.weights * ndtr(mix.means / mix.sds)).sum(axis=0))


def changes_between(fit: Fit, people: Ints, t0: Any, t1: Any) -> Changes:
    """How abilities of some people (numbers, rising) changed between two times."""
    start, end = (np.full(people.size, t) for t in two_times(fit, t0, t1))
    return changes_between_own_times(fit, people, start, end)


def changes_between_own_times(fit: Fit, people: Ints, start: Array, end: Array) -> Changes:
    """How abilities of some people (numbers, rising) changed between times of each one's own.

    `start` and `end` (n_people,) are on the fit's clock.
    """
    found = latent_changes(fit, people, start, end)
    cohort = fit.priors.cohort
    part = np.zeros(people.size)
    if cohort is not None:
        group = fit.group_of(people)
        part = cohort.mean(end, group) - cohort.mean(start, group)
    marginals = Marginals(
        found.weights, fit.gain * found.means, fit.gain * np.sqrt(found.variances)
    )
    return Changes(marginals, fit.gain * part)


def change_columns(fit: Fit, people: Ints, found: Changes, level: float) -> dict[str, Any]:
    """Columns of `Fit.changes`."""
    labels = fit.responses.people.tolist()
    keys: dict[str, Any] = {"id": [labels[p] for p in people]}
    if fit.responses.groups:
        names = [*fit.responses.groups, None]
        keys["group"] = [names[g] for g in fit.group_of(people)]
    columns = band_columns(found.marginals, keys, level)
    mean = columns.pop("mean")
    moves = columns["sd"] > NO_MOVE  # the variance of what does not move is the smallest number
    rest = {name: np.where(moves, columns.pop(name), 0.0) for name in ("sd", "lower", "upper")}
    return {
        **columns,
        "change": mean,
        **rest,
        "rose": found.rose,
        "cohort": found.cohort,
        "own": mean - found.cohort,
    }


def person_columns(fit: Fit, level: float) -> dict[str, Any]:
    """One row a person: answers, first and last time, ability then, and the change between."""
    first, last = fit.sites.layout.spans
    people = np.arange(first.size)
    now = fit.marginals(people, last)
    found = changes_between_own_times(fit, people, first, last)
    changed = change_columns(fit, people, found, level)
    keys: dict[str, Any] = {name: changed.pop(name) for name in ("id", "group") if name in changed}
    return {
        **keys,
        "answers": np.diff(fit.responses.person_start),
        "first": fit.from_clock(first),
        "last": fit.from_clock(last),
        "ability": now.mean(IDENTITY),
        "ability_sd": now.sd(IDENTITY),
        **changed,
    }


def sorted_by_change(columns: dict[str, Any]) -> Any:
    """Columns with those who rose most first."""
    order = np.argsort(-as_vector(columns["change"], "change"), kind="stable")
    return {
        name: values[order] if isinstance(values, np.ndarray) else [values[k] for k in order]
        for name, values in columns.items()
    }
