"""A fit of a bank of items alone: items and population are stated, and nobody has answered yet."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaesti.data import Responses, TimeAxis, count_noun, frame_kind, parse_iso, read_times
from dynaesti.errors import InputError
from dynaesti.estimation import (
    FittedModel,
    PriorMixture,
    mean_and_sd,
    population_grids,
    resolve_kernel,
    stated_bank,
)
from dynaesti.inference import EPResult
from dynaesti.model import Kernel, Level
from dynaesti.results.scoring.scorer_file import empty_responses

if TYPE_CHECKING:
    from dynaesti.results.fit import Fit


def bank_fit_fields(
    items: Any,
    model: Any,
    population: tuple[float, float],
    kernel: Any,
    bandwidth: Any,
    clock: str,
    unit: str | None,
    origin: Any,
    categories: Any,
) -> dict[str, Any]:
    """The fields of a `Fit` of items that are given and of people still to come."""
    if clock not in ("calendar", "person"):
        raise InputError(f"clock: {clock!r} is none of 'calendar', 'person'")
    labels, bank, coding = stated_bank(
        items, model, mean_and_sd(population, "population"), categories
    )
    prior = _stated_kernel(kernel, bandwidth)
    axis = _axis(origin)
    reflects = any(block.model.has_signed_slopes for block in bank.blocks)
    fitted = FittedModel(
        coding=coding,
        bank=bank,
        priors=PriorMixture.single(prior),
        covariance=None,
        scale_covariance=None,
        trace=(),
        converged=True,
        options=_options(reflects),
        batches=(),
        max_abs_ability=0.0,
        item_nodes=None,
        item_drift=None,
    )
    named = unit or axis.unit
    nobody = empty_responses(axis, named, clock, frame_kind(items), {}, ())
    return {
        **vars(fitted),
        "responses": replace(nobody, items=labels),
        "ep": (EPResult.empty(0, 0),),
        "weights": np.zeros((1, 0)),
    }


def _options(reflects: bool) -> dict[str, Any]:
    """Options as of an estimator that was asked for nothing."""
    return {
        "scale": "abilities",
        "direction": "free" if reflects else "positive",
        "orient": None,
        "priors": "weak",
        "threads": None,
        "rare": 1,
        "tolerance": 0.01,
        "cohort": None,
        "groups": None,
        "effects": None,
        "free": None,
    }


def _stated_kernel(kernel: Any, bandwidth: Any) -> Kernel:
    """How abilities move, of variance 1; a constant for each person where nothing is said."""
    if kernel is None and bandwidth is None:
        return Level(amplitude=1.0)
    asked = resolve_kernel(kernel, bandwidth)
    if not isinstance(asked, Kernel):
        raise InputError(f"kernel: expected a kernel such as RBF(30.0), got {asked!r}")
    if asked.static:
        return asked
    grids = population_grids(asked, 1.0, 1.0, 0.0)
    if len(grids) > 1 or grids[0].axes:
        raise InputError(
            "kernel: a bank has no answers from which to learn how abilities move; state "
            "its numbers, as in bandwidth=30.0 or kernel=Level(0.7) + Matern32(30.0, 0.7)"
        )
    return grids[0].at(())


def _axis(origin: Any) -> TimeAxis:
    """The time axis: numbers as they are, or dates counted from one of them."""
    if origin is None:
        return TimeAxis(0.0, 0, stamps=False, zoned=False)
    found, _ = read_times(parse_iso(origin, "origin"), "origin")
    if not found.stamps:
        raise InputError(f"origin: expected a date, from which days are counted, got {origin!r}")
    return found


def bank_sentence(fit: Fit) -> str:
    """What a bank states, in a few sentences."""
    mean, sd = fit.shift, fit.gain
    return (
        f"A bank of {count_noun(fit.responses.items.size, 'items')} ({fit.model_names()}) without "
        f"people. Items and population are as stated, and nothing was learned: abilities of mean "
        f"{mean:g} and sd {sd:g}, {fit.kernels[0].describe()}."
    )


def as_first_data(fit: Fit, new: Responses) -> Fit:
    """A fit without people with the columns of its first data, and their axis if they have dates.

    Other fits stay as they are.
    """
    own = fit.responses
    if len(own):
        return fit
    columns = {role: name for role, name in new.columns.items() if role != "model"}
    own = replace(own, columns=columns, frame=own.frame or new.frame)
    if new.axis.stamps and not own.axis.stamps and new.columns.get("time"):
        own = replace(own, axis=new.axis, unit=new.unit)
    return replace(fit, responses=own)
