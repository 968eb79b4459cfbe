"""Fits in which items are tested: with a column's effect on all answers, and on freed items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynaesti.core import Array, Bools, Ints
from dynaesti.data import Covariate, Factor, Formula, Responses, Term, parse_formula
from dynaesti.estimation import EMSchedule, EMSettings
from dynaesti.results.fit import Fit
from dynaesti.results.source import ResponsesInMemory

ITERATIONS = 30  # of EM, from the items that the fit has


def with_impact(fit: Fit, column: str) -> Fit:
    """The fit with an effect of a column of its responses on all answers, and on their growth.

    Groups that differ in ability would otherwise be shrunk towards each other, and all items seem
    to favour the better one.
    """
    is_category = fit.responses.covariates[column].levels is not None
    quoted = f"C(`{column}`)" if is_category else f"`{column}`"
    return _refitted(fit, fit.responses, parse_formula(f"{quoted} * time").terms)


@dataclass(frozen=True)
class FreedFit:
    """A fit in which some items have effects of their own."""

    fit: Fit
    effects: Array  # (n_freed, n_columns) in sds of ability, for one unit of the column
    is_freed: Bools  # (n_coefficients,) which of the cohort's coefficients they are


def with_freed_items(fit: Fit, tested: Array, freed: Ints) -> FreedFit:
    """The fit with effects of columns on some items.

    Parameters
    ----------
    fit : Fit
    tested : array (n_responses, n_columns)
    freed : int array (n_freed,)
        Numbers of the items.
    """
    r = fit.responses
    columns = {
        f"column {k} of item {item}": Covariate(x * (r.item == item))
        for item in freed.tolist()
        for k, x in enumerate(tested.T)
    }
    responses = replace(r, covariates={**r.covariates, **columns})
    made = _refitted(fit, responses, [(Factor("", name),) for name in columns])
    cohort = made.priors.cohort
    assert cohort is not None
    assert cohort.effects is not None
    assert cohort.effect_contrasts is not None
    names = cohort.effects.names
    at = np.array([names.index(name) for name in columns], dtype=np.int64)
    effects = cohort.effect_values[at] / cohort.effects.scale[at]
    is_freed = np.abs(cohort.effect_contrasts[at]).sum(axis=0) > 0
    return FreedFit(made, effects.reshape(freed.size, -1), is_freed)


def _refitted(fit: Fit, responses: Responses, terms: Sequence[Term]) -> Fit:
    """The fit with more terms in its formula; learned again from where it is."""
    known = fit.priors.effects
    formula = Formula("", (), ()) if known is None else known.formula
    formula = replace(formula, terms=(*formula.terms, *terms))
    source = ResponsesInMemory(responses, fit.options.get("threads"), None, np.inf)
    effects = source.effects(formula)
    people = source.people(fit.coding, fit.bank, effects)
    priors = replace(fit.priors, log_prior=np.log(np.maximum(fit.priors.weights, 1e-12)))
    schedule = EMSchedule(
        people,
        fit.kernels[0],
        EMSettings(max_iterations=ITERATIONS, tolerance=fit.options["tolerance"]),
        fit.options.get("threads"),
        standard_errors=False,
        known_priors=priors,
        learns_cohort=fit.has_cohort,
        groups=responses.groups,
        effects=effects,
    )
    orient = fit.options.get("orient")
    return source.result(schedule.run(fit.bank), fit.coding, fit.options, orient)


def has_impact_of(formula: Formula, column: str) -> bool:
    """Whether a formula has a column's effect on all answers."""
    alone = [term[0] for term in formula.terms if len(term) == 1]
    return any(factor.function in ("", "C") and factor.column == column for factor in alone)
