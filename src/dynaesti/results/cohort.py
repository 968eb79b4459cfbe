"""The cohort's curve and its groups' as frames, and everyone's change between two times."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr, ndtri

from dynaesti.core import Array, Ints, as_vector, check_size
from dynaesti.errors import InputError, option
from dynaesti.inference import Marginals, check_level
from dynaesti.model import Cohort
from dynaesti.results.frames import IDENTITY, band_columns
from dynaesti.results.latent import latent_changes

if TYPE_CHECKING:
    from dynaesti.results.fit import Fit
    from dynaesti.results.fit_base import FitBase

POINTS = 50  # of the cohort's curve, unless times are asked for


def cohort_of(fit: FitBase) -> Cohort:
    """The cohort of a fit; an error where it has none."""
    if fit.priors.cohort is None:
        why = fit.options.get("cohort_left_out") or (
            "It was left out by an option, for constant abilities, or with fewer than ten people; "
            f"{option('cohort', 'learn')} learns it."
        )
        raise InputError(
            f"cohort: this fit has none, so its population's mean is 0 at all times. {why}"
        )
    return fit.priors.cohort


def cohort_times(fit: FitBase, at: Any) -> Array:
    """Times on the fit's clock at which the cohort is asked for; by default, over all the data."""
    if at is None:
        return np.linspace(*fit.time_range, POINTS)
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
    sds = fit.gain * np.sqrt(np.maximum(cohort.variance(times, group), 1e-300))
    one = Marginals(np.ones((1, times.size)), means[None], sds[None])
    return band_columns(one, keys, level)


def group_differences(fit: FitBase, t0: Any, t1: Any, level: float) -> dict[str, Any]:
    """Differences of groups in level at two times and in growth between them, pair by pair."""
    check_level(level)
    cohort = cohort_of(fit)
    if len(cohort.groups) < 2:
        raise InputError(
            f"compare_groups: this fit has no groups; fit with {option('groups', 'column')}"
        )
    ends = fit.to_clock([t0, t1])
    rows: list[tuple[Any, ...]] = []
    beyond = float(ndtri(0.5 + level / 2))
    for g, h in combinations(range(cohort.n_groups), 2):
        both = [cohort.design(ends, np.full(2, k)) for k in (g, h)]
        apart = both[0] - both[1]
        drift = np.sum([cohort.drift_variance(ends, np.full(2, k)) for k in (g, h)], axis=0)
        contrasts = {
            f"level at {time_text(t0)}": (apart[0], drift[0]),
            f"level at {time_text(t1)}": (apart[1], drift[1]),
            "growth": (apart[1] - apart[0], drift[0] + drift[1]),
        }
        for what, (direction, extra) in contrasts.items():
            difference = fit.gain * float(direction @ cohort.coefficients)
            se = fit.gain * float(np.sqrt(_variance(cohort, direction) + extra))
            rows.append(
                (
                    cohort.groups[g],
                    cohort.groups[h],
                    what,
                    difference,
                    se,
                    difference - beyond * se,
                    difference + beyond * se,
                    float(ndtr(difference / se)) if se > 0 else float("nan"),
                )
            )
    names = ("group", "other", "what", "difference", "se", "lower", "upper", "probability")
    return dict(zip(names, (list(column) for column in zip(*rows, strict=True)), strict=True))


def time_text(time: Any) -> str:
    """A time in words: few digits, or a date without the zeros of midnight."""
    if isinstance(time, float | np.floating):
        return f"{time:.6g}"
    return str(time).removesuffix("T00:00:00.000000000")[:19]


def _variance(cohort: Cohort, direction: Array) -> float:
    """Variance of a linear function of the cohort's coefficients."""
    if cohort.covariance is None:
        raise InputError(
            f"compare_groups: standard errors were not computed; fit with "
            f"{option('standard_errors', True)}"
        )
    return float(direction @ cohort.covariance @ direction)


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
    start, end = (np.full(people.size, t) for t in fit.to_clock([t0, t1]))
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
    rest = {name: columns.pop(name) for name in ("sd", "lower", "upper")}
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
