"""Parametric bootstrap: errors of items, and whether a fit's data are like data of its model."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, logit

from dynaesti.core import Array, single_blas_thread, whole_number
from dynaesti.data import Responses, make_frame
from dynaesti.errors import ConvergenceWarning, InputError, warn_user
from dynaesti.estimation import (
    EMSchedule,
    EMSettings,
    PeopleInMemory,
    build_people_sites,
    kernel_weights,
)
from dynaesti.inference import check_level
from dynaesti.model import Kernel
from dynaesti.results.drawn_responses import draw_responses
from dynaesti.results.explained import reliability
from dynaesti.tables import as_frame

if TYPE_CHECKING:
    from dynaesti.results.fit import Fit

FEWEST = 10  # replications
BESIDE = {"item", "model", "n", "share", "item_rest", "flag"}  # columns that are no parameters
LEAST_SHARE = 1e-12  # of a kernel in the population: logarithms stay finite
ODD = 0.05  # share of refits that did not converge, beyond which a warning says so

OnReplication = Callable[[int, int], None]


@dataclass(frozen=True, repr=False)
class Bootstrap:
    """What refits of drawn data say of a fit; see `bootstrap`.

    Parameters
    ----------
    items : frame
        A row for each item and parameter: item, parameter, estimate, se (as the fit tells it),
        bias, bootstrap_se, lower, upper.
    fit : frame
        A row for each statistic of fit: statistic, observed, mean, lower, upper, p.
    replications : int
        Refits that converged.
    unconverged : int
        Refits that did not, which are left out.
    seconds : float
        CPU time of all of them.
    draws : array (replications, n_rows)
        The refits' parameters, a column for each row of `items`.
    """

    items: Any
    fit: Any
    replications: int
    unconverged: int
    seconds: float
    draws: Array

    def __repr__(self) -> str:
        left_out = f", {self.unconverged} left out" if self.unconverged else ""
        return f"<Bootstrap of {self.replications} refits{left_out}, {self.seconds:.0f} CPU s>"


@single_blas_thread()
def bootstrap(
    fit: Fit,
    replications: int = 100,
    *,
    level: float = 0.95,
    seed: int = 0,
    threads: int | None = None,
    progress: bool | OnReplication = False,
) -> Bootstrap:
    """Draw the data of a fit anew and refit them, many times.

    Each time all people get new ability curves from the fitted population, and new answers to the
    same items at the same times; then items, cohort, effects and the kernels' weights are
    learned again, from the present ones on. Kernels, categories, priors and anchors are held. How
    estimates scatter gives standard errors and intervals without any approximation but that the
    model is right. That it is right is tested by statistics of the real data beside those of drawn
    ones.

    A refit costs a fifth to a third of the CPU time of the fit; `progress` tells the time that is
    left.

    Parameters
    ----------
    fit : Fit
    replications : int, default 100
        Refits, at least 10. Standard errors from 100 are good to 7 %; intervals want 500 or more.
    level : float, default 0.95
        Probability of the intervals.
    seed : int, default 0
        Replications are the same for a seed, whatever the threads.
    threads : int, optional
        Threads of each refit. Default: those of the fit.
    progress : bool or callable, default False
        True shows a line; a function is called with the refits done and of all.

    Returns
    -------
    Bootstrap
        With the frames `items` and `fit`. Intervals are basic ones (the estimate less the
        quantiles of the error), of logarithms for positive slopes and of log odds for asymptotes.
        A p near 0 or 1 says that data of this model are unlike those of the fit.

    Raises
    ------
    InputError
        If the fit is one of shards, or has no people, or a model cannot draw answers.

    Warns
    -----
    ConvergenceWarning
        If more than one in twenty refits did not converge.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=40, items=4, per_person=10, seed=1).table
    >>> fit = dy.DynAEsti("1PL", bandwidth=float("inf")).fit(table)
    >>> found = dy.evaluation.bootstrap(fit, 10)
    >>> list(found.items.columns)
    ['item', 'parameter', 'estimate', 'se', 'bias', 'bootstrap_se', 'lower', 'upper']
    >>> found.fit["statistic"].tolist()
    ['log evidence per answer', 'misfit of items', 'reliability']
    """
    count = whole_number(replications, "replications", FEWEST)
    check_level(level)
    seed = whole_number(seed, "seed", 0)
    _check_refittable(fit)
    threads = fit.options["threads"] if threads is None else whole_number(threads, "threads", 1)
    report = _Line(count) if progress is True else progress or None
    begun = time.process_time()
    estimates: list[Array] = []
    statistics: list[list[float]] = []
    for k in range(count):
        made = _refit(fit, np.random.default_rng([seed, k]), threads)
        if made.converged:
            estimates.append(_parameters(made)[2])
            statistics.append(list(_statistics(made).values()))
        if report is not None:
            report(k + 1, count)
    lost = count - len(estimates)
    _tell_lost(lost, count)
    draws = np.array(estimates)
    return Bootstrap(
        make_frame(_item_columns(fit, draws, level), fit.frame),
        make_frame(_fit_columns(fit, np.array(statistics), level), fit.frame),
        len(estimates),
        lost,
        time.process_time() - begun,
        draws,
    )


def _check_refittable(fit: Fit) -> None:
    """Refuse fits whose people are not in memory, or that have none."""
    if not hasattr(fit, "responses"):
        raise InputError(
            "bootstrap: a fit of shards is too large to be refitted many times; fit a sample of "
            "its people in memory"
        )
    fit.require_people()


def _tell_lost(lost: int, count: int) -> None:
    """Warn of refits that did not converge; refuse if hardly any did."""
    if count - lost < 2:
        raise InputError(
            f"bootstrap: {lost} of {count} refits did not converge, so nothing can be said"
        )
    if lost > ODD * count:
        warn_user(
            f"{lost} of {count} refits did not converge and are left out; their data were harder "
            "than the real ones",
            ConvergenceWarning,
        )


def _refit(fit: Fit, rng: np.random.Generator, threads: int | None) -> Fit:
    """A fit of drawn responses of the same people to the same items at the same times."""
    responses = drawn_as_fit(fit, rng)
    effects = fit.priors.effects
    people = PeopleInMemory(build_people_sites(responses, fit.coding, fit.bank, effects), threads)
    log_prior = np.log(np.maximum(fit.priors.weights, LEAST_SHARE))
    schedule = EMSchedule(
        people,
        fit.kernels[0],
        EMSettings(tolerance=fit.options["tolerance"]),
        threads,
        standard_errors=False,
        known_priors=replace(fit.priors, log_prior=log_prior),
        learns_cohort=fit.has_cohort,
        groups=fit.responses.groups,
        effects=effects,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what one drawn table lacks, nobody has to know
        estimate = schedule.run(fit.bank)
    fitted = estimate.fitted(fit.coding, fit.options)
    weights = kernel_weights(fitted.population, people.ep)
    return replace(
        fit,
        **vars(fitted),
        responses=responses,
        ep=people.ep,
        weights=weights,
        known_sites=people.sites,
    )


def drawn_as_fit(fit: Fit, rng: np.random.Generator) -> Responses:
    """The responses of a fit with values drawn anew: people from the population, then answers."""
    r = fit.responses
    layout = fit.sites.layout
    kernel = rng.choice(len(fit.kernels), size=r.people.size, p=fit.population)
    curve = np.empty(layout.n_sites)
    for person in range(r.people.size):
        sites = layout.sites_of(np.array([person]))
        times, at = np.unique(layout.times[sites], return_inverse=True)
        curve[sites] = _drawn_curve(fit.kernels[kernel[person]], times, rng)[at]
    if fit.prior_mean is not None:
        curve += fit.prior_mean
    first = np.flatnonzero(np.diff(layout.factor_response, prepend=-1))
    site = np.repeat(np.arange(layout.n_sites), np.diff(layout.factor_start))[first]
    return replace(r, resp=draw_responses(fit.bank, r.item, curve[site], rng))


def _drawn_curve(kernel: Kernel, times: Array, rng: np.random.Generator) -> Array:
    """A curve of the population at some times, nuggets included."""
    if kernel.static:
        sd = np.sqrt(sum(summand.variance for summand in kernel.summands))
        return np.full(times.size, sd * rng.standard_normal())
    covariance = kernel.cov(times[:, None], times) + kernel.nugget_variance * np.eye(times.size)
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(
        vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(times.size))
    )


def _parameters(fit: Fit) -> tuple[list[Any], list[str], Array]:
    """Item, name and value of each reported parameter, item by item."""
    items = as_frame(fit.items)
    columns = {
        name: np.asarray(items[name], dtype=np.float64)
        for name in items.columns
        if name not in BESIDE and not name.startswith("se_")
    }
    names = list(columns)
    table = np.array(list(columns.values())).T
    row, column = np.nonzero(_is_parameter(fit, names))
    labels = fit.item_labels.tolist()
    return [labels[k] for k in row], [names[k] for k in column], table[row, column]


def _is_parameter(fit: Fit, names: list[str]) -> Array:
    """Whether an item has a parameter of a name, (n_items, n_names)."""
    out = np.zeros((fit.bank.item_count, len(names)), dtype=bool)
    for block in fit.bank.blocks:
        own = block.reported(block.u[:1]) if len(block.u) else {}
        for name in own:
            out[block.items, names.index(name)] = True
    return out


def _item_columns(fit: Fit, draws: Array, level: float) -> dict[str, Any]:
    items, names, estimate = _parameters(fit)
    known = as_frame(fit.items)
    number = {label: k for k, label in enumerate(fit.item_labels.tolist())}
    se = np.array(
        [
            known[f"se_{name}"][number[item]] if f"se_{name}" in known.columns else np.nan
            for item, name in zip(items, names, strict=True)
        ]
    )
    lower, upper = _basic_interval(np.array(names), estimate, draws, level)
    return {
        "item": items,
        "parameter": names,
        "estimate": estimate,
        "se": se,
        "bias": draws.mean(axis=0) - estimate,
        "bootstrap_se": draws.std(axis=0, ddof=1),
        "lower": lower,
        "upper": upper,
    }


def _basic_interval(names: Any, estimate: Array, draws: Array, level: float) -> tuple[Array, Array]:
    """The estimate less the quantiles of the error, on scales that keep bounds."""
    positive = (names == "a") & (estimate > 0) & (draws > 0).all(axis=0)
    share = np.isin(names, ("c", "d")) & (draws > 0).all(axis=0) & (draws < 1).all(axis=0)
    share &= (estimate > 0) & (estimate < 1)

    def there(x: Array) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(positive, np.log(x), np.where(share, logit(x), x))

    low, high = np.quantile(there(draws), [0.5 - level / 2, 0.5 + level / 2], axis=0)
    ends = (2 * there(estimate) - high, 2 * there(estimate) - low)
    with np.errstate(over="ignore"):
        back = [np.where(positive, np.exp(x), np.where(share, expit(x), x)) for x in ends]
    return back[0], back[1]


def _statistics(fit: Fit) -> dict[str, float]:
    """How well a fit suits its data, in numbers that its model's own data tell the spread of."""
    checks = fit.item_checks
    return {
        "log evidence per answer": fit.log_evidence / len(fit.responses),
        "misfit of items": np.nan if checks is None else float(checks.misfit.mean()),
        "reliability": reliability(fit),
    }


def _fit_columns(fit: Fit, drawn: Array, level: float) -> dict[str, Any]:
    observed = _statistics(fit)
    values = np.array(list(observed.values()))
    low, high = np.quantile(drawn, [0.5 - level / 2, 0.5 + level / 2], axis=0)
    above = (drawn > values).mean(axis=0) + 0.5 * (drawn == values).mean(axis=0)
    return {
        "statistic": list(observed),
        "observed": values,
        "mean": drawn.mean(axis=0),
        "lower": low,
        "upper": high,
        "p": above,
    }


class _Line:
    """A line that says how many refits are done, and how long the rest will take."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.begun = time.monotonic()

    def __call__(self, done: int, count: int) -> None:
        live = sys.stderr.isatty()
        if not (live or done in (1, count) or done * 10 // count > (done - 1) * 10 // count):
            return
        left = (time.monotonic() - self.begun) / done * (count - done)
        start, end = ("\r", "" if done < count else "\n") if live else ("", "\n")
        sys.stderr.write(f"{start}refit {done} of {count}, about {left:.0f} s left{end}")
        sys.stderr.flush()
