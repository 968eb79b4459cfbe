"""The scorer of a fit, wherever the fit's people are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynaesti.results.scoring.scorer import Scorer
from dynaesti.results.scoring.scorer_file import empty_responses, scoring_model

if TYPE_CHECKING:
    from dynaesti.results.fit_base import FitBase


def scorer_of(fit: FitBase) -> Scorer:
    """Items and population of a fit, for learners that are followed answer by answer.

    Raises
    ------
    InputError
        If a kernel has no state of a few numbers.
    """
    like = fit.response_template
    cohort = fit.priors.cohort
    template = empty_responses(
        like.axis,
        like.unit,
        like.clock,
        like.frame,
        like.columns,
        () if cohort is None else cohort.groups,
    )
    made = Scorer(scoring_model(fit), fit.item_labels, template)
    _ = made.form  # refuses kernels without a state
    return made
