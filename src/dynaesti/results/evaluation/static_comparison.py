"""A fit beside one of constant abilities: whether the times of answers help to predict them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynaesti.core import person_error
from dynaesti.data import make_frame
from dynaesti.errors import InputError
from dynaesti.results.evaluation.comparison import held_out
from dynaesti.results.evaluation.estimator import Estimator
from dynaesti.results.evaluation.scores import EDGE
from dynaesti.results.evaluation.splits import split
from dynaesti.results.fit import Fit
from dynaesti.tables import as_frame


def compare_with_static(estimator: Estimator, fit: Fit) -> StaticComparison:
    """Compare a fit with one of constant abilities to the same answers.

    Its items start from those of the fit. Each answer is predicted without itself under both.

    Parameters
    ----------
    estimator : DynAEsti
        The estimator that made the fit.
    fit : Fit

    Returns
    -------
    StaticComparison

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=12, items=5, per_person=12, seed=1).table
    >>> estimator = dy.DynAEsti("2PL")
    >>> comparison = dy.evaluation.compare_with_static(estimator, estimator.fit(table))
    >>> sorted(comparison.facts())
    ['dynamic_log_loss', 'se', 'static_log_loss']
    >>> comparison.people
    12
    """
    fit.require_people()
    static = estimator.with_options(
        bandwidth=np.inf,
        cohort=None,
        groups=None,
        effects=None,
        checkpoint=None,
        progress=False,
        standard_errors=False,
        start=starting_items(fit),
    )
    return static_comparison_of(fit, static.fit(fit.responses))


def static_comparison_of(fit: Fit, static: Fit) -> StaticComparison:
    """Compare two fits of the same answers, of which the second has constant abilities.

    Parameters
    ----------
    fit, static : Fit

    Returns
    -------
    StaticComparison

    Raises
    ------
    InputError
        If the fits have different numbers of answers.
    """
    if len(fit.responses) != len(static.responses):
        raise InputError(
            f"the fits are of different answers: {len(fit.responses):,} and "
            f"{len(static.responses):,}"
        )
    losses = [-np.log(np.maximum(one.leave_one_out[0].given, EDGE)) for one in (fit, static)]
    difference = losses[1] - losses[0]
    people = int(fit.responses.people.size)
    return StaticComparison(
        static,
        float(losses[0].mean()),
        float(losses[1].mean()),
        person_error(difference, fit.responses.person),
        people,
    )


def starting_items(fit: Fit) -> dict[Any, dict[str, float]]:
    """Item parameters of a fit, for the next fit to start from.

    Items are left out where a slope or thresholds are shared, or where the model cannot be
    rescaled.

    Parameters
    ----------
    fit : Fit

    Returns
    -------
    dict of label to dict of str to float
        Reported parameters by item and name, as `DynAEsti(start=…)` takes them.
    """
    rows = {row["item"]: row for row in as_frame(fit.items).rows()}
    out: dict[Any, dict[str, float]] = {}
    for block in fit.bank.blocks:
        if (
            block.model.has_unit_slope
            or block.model.shares_thresholds
            or not block.model.can_be_rescaled
        ):
            continue
        names = list(block.model.constrain(block.u[:1]))
        if any(name.startswith("b") for name in names):  # intercepts say the same on another scale
            names = [name for name in names if not name.startswith("intercept")]
        for label in fit.responses.items[block.items].tolist():
            out[label] = {
                name: rows[label][name] for name in names if np.isfinite(rows[label][name])
            }
    return out


def dynamic_against_static(
    estimator: Estimator,
    data: Any,
    *,
    share: float = 0.2,
    by: str = "random",
    seed: int = 0,
    **columns: Any,
) -> Any:
    """Score moving against constant abilities on held-out answers.

    Both are fitted to the same part of the data and scored on the rest.

    Parameters
    ----------
    estimator : DynAEsti
    data : frame, mapping, path or Responses
    share, by, seed, **columns
        How to hold out, see `split`.

    Returns
    -------
    frame
        Rows dynamic and static; columns abilities, log_evidence, log_loss, brier, auc, imv.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=12, items=5, per_person=12, seed=1).table
    >>> frame = dy.evaluation.dynamic_against_static(dy.DynAEsti("2PL"), table, by="last")
    >>> list(frame["abilities"])
    ['dynamic', 'static']
    """
    train, test = split(data, share, by=by, seed=seed, **columns)
    static = estimator.with_options(bandwidth=np.inf, cohort=None, groups=None, effects=None)
    rows = {}
    for name, chosen in (("dynamic", estimator), ("static", static)):
        fit = chosen.fit(train)
        seen = np.isin(test.items, train.items)
        rows[name] = (
            fit.log_evidence,
            held_out(fit, test.select_responses(np.flatnonzero(seen[test.item]), drop_unused=True)),
        )
    return make_frame(
        {
            "abilities": list(rows),
            "log_evidence": [e for e, _ in rows.values()],
            "log_loss": [s.log_loss for _, s in rows.values()],
            "brier": [s.brier for _, s in rows.values()],
            "auc": [s.auc for _, s in rows.values()],
            "imv": [s.imv for _, s in rows.values()],
        },
        train.frame,
    )


FEW = 10  # people below which the standard error of a difference is not reliable


@dataclass(frozen=True)
class StaticComparison:
    """A fit beside one of constant abilities, each answer predicted without itself.

    Parameters
    ----------
    fit : Fit
        The one of constant abilities.
    dynamic_loss, static_loss : float
        Log loss of moving and of constant abilities.
    se : float
        Standard error of the difference, over people.
    people : int
        Number of people.
    """

    fit: Fit
    dynamic_loss: float
    static_loss: float
    se: float
    people: int

    def facts(self) -> dict[str, float]:
        """Log losses and the standard error of their difference, by name."""
        return {
            "dynamic_log_loss": self.dynamic_loss,
            "static_log_loss": self.static_loss,
            "se": self.se,
        }

    def verdict(self) -> str:
        """Whether abilities that move predict better, in one sentence."""
        gain = self.static_loss - self.dynamic_loss
        if self.people < FEW:
            return (
                f"With {self.people} people it is not clear whether knowing when helps (log "
                f"loss {self.dynamic_loss:.4f} with moving "
                f"and {self.static_loss:.4f} with constant abilities, each answer predicted "
                f"without itself)."
            )
        verdict = (
            "Knowing when helps"
            if gain > 2 * self.se
            else "Knowing when does not help"
            if gain < 2 * -self.se
            else "Whether knowing when helps is not clear"
        )
        return (
            f"{verdict}: each answer predicted without itself, the log loss is "
            f"{self.dynamic_loss:.4f} with moving and "
            f"{self.static_loss:.4f} with constant abilities (difference {gain:+.4f} ± "
            f"{self.se:.4f})."
        )
