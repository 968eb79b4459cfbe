"""Next answers: each predicted from what its person answered before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynaesti.data import make_frame
from dynaesti.inference import Marginals
from dynaesti.results.filtered import filtered_marginals
from dynaesti.results.predictions import predict_responses, with_drift
from dynaesti.results.updates import fit_new_people, read_new_responses

if TYPE_CHECKING:
    from dynaesti.results.fit import Fit


def next_answers(fit: Fit, data: Any) -> Any:
    """Predict each answer of further people from their answers at earlier times.

    Items and population are those of the fit; of the people, only their answers in `data` count,
    as if they were new to it. The first answer of each is predicted from the population alone.

    Parameters
    ----------
    fit : Fit
        Fitted to other people.
    data : frame, mapping, path or Responses
        Answers of these people.

    Returns
    -------
    frame
        Columns id, item, time, expected, resp, p (probability or density of the answer given) and
        p0, p1, …; one row an answer, in the order of the data. Its scores: `binary_scores`.

    Raises
    ------
    InputError
        If items are unknown, or a column of the fit's effects is absent.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=30, items=5, per_person=12, seed=1).table
    >>> train, test = dy.evaluation.split(table, 0.3, by="people")
    >>> found = dy.evaluation.next_answers(dy.DynAEsti("2PL").fit(train), test)
    >>> bool(dy.evaluation.binary_scores(found["p1"], found["resp"]).log_loss < 0.7)
    True
    """
    new = read_new_responses(fit, data)
    mine = fit_new_people(fit, new)
    r = mine.responses
    effects = fit.priors.effects
    found = filtered_marginals(
        mine,
        r.person,
        r.clock_times,
        rows=None if effects is None else effects.rows(r),
        before=True,
    )
    latent = Marginals(found.weights, (found.means - fit.shift) / fit.gain, found.sds / fit.gain)
    latent = with_drift(latent, fit.item_drift, r.item, r.clock_times)
    predicted = predict_responses(fit.bank, fit.coding, r.item, r.resp, latent, fit.item_nodes)
    back = np.argsort(r.row, kind="stable")
    columns = predicted.columns(r, back, fit.coding, r.item)
    return make_frame(columns, r.frame or fit.frame)
