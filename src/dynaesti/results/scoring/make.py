"""The scorer of a fit, wherever the fit's people are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynaesti.core import Ints
from dynaesti.results.scoring.scorer import Scorer
from dynaesti.results.scoring.scorer_file import empty_responses, scoring_model
from dynaesti.results.scoring.state import State

if TYPE_CHECKING:
    from dynaesti.data import Covariate
    from dynaesti.results.fit import Fit
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


def state_of(fit: Fit, scorer: Scorer, person: Ints) -> State:
    """The state of a person of a fit: all answers, taken in one after the other.

    `person` (1,) is the person's number in the fit.
    """
    own = fit.responses.select_people(person)
    personal = scorer.personal_columns
    given = {name: _value(own.covariates[name], 0) for name in personal}
    if own.group is not None and scorer.template.groups and own.group[0] >= 0:
        given[str(own.columns["group"])] = own.groups[int(own.group[0])]
    state = scorer.start(**given)
    of_answers = [name for name in scorer.column_kinds if name not in personal]
    labels = own.items.tolist()
    times = own.axis.restore(own.offsets)
    weights = [1.0] * len(own) if own.weight is None else own.weight.tolist()
    for k, (item, resp) in enumerate(zip(own.item.tolist(), own.resp.tolist(), strict=True)):
        columns = {name: _value(own.covariates[name], k) for name in of_answers}
        time = times[k] if own.axis.stamps else float(times[k])
        state = scorer.add(state, time, labels[item], resp, weights[k], **columns)
    return state


def _value(column: Covariate, row: int) -> Any:
    """One value of a column, as users give it."""
    value = float(column.values[row])
    return value if column.levels is None else column.levels[int(value)]
