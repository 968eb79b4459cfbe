"""A fit beside its twin with constant abilities: whether knowing when helped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from dynaesti.data import make_frame
from dynaesti.errors import InputError
from dynaesti.results.evaluation.comparison import held_out
from dynaesti.results.evaluation.estimator import Estimator
from dynaesti.results.evaluation.scores import EDGE, person_error
from dynaesti.results.evaluation.splits import split
from dynaesti.results.fit import Fit


def compare_with_static(estimator: Estimator, fit: Fit) -> StaticComparison:
    """The same answers with constant abilities, items begun from the fit's.

    Each answer predicted without itself under both.
    """
    still = estimator.with_options(
        bandwidth=np.inf,
        checkpoint=None,
        progress=False,
        standard_errors=False,
        start=starting_items(fit),
    )
    return static_comparison_of(fit, still.fit(fit.responses))


def static_comparison_of(fit: Fit, static: Fit) -> StaticComparison:
    """Two fits of the same answers, of which the second has constant abilities, held against each
    other.
    """
    if len(fit.responses) != len(static.responses):
        raise InputError(
            f"the fits are of different answers: {len(fit.responses):,} and "
            f"{len(static.responses):,}"
        )
    losses = [-np.log(np.maximum(one.leave_one_out[0].given, EDGE)) for one in (fit, static)]
    apart = losses[1] - losses[0]
    people = int(fit.responses.people.size)
    return StaticComparison(
        static,
        float(losses[0].mean()),
        float(losses[1].mean()),
        person_error(apart, fit.responses.person),
        people,
    )


def starting_items(fit: Fit) -> dict[Any, dict[str, float]]:
    """A fit's items for the next one to begin from.

    Where a slope or steps are not an item's own, or the model is the user's, none.
    """
    table = nw.from_native(fit.items, eager_only=True)
    rows = dict(zip(fit.responses.items.tolist(), table.iter_rows(named=True), strict=True))
    out: dict[Any, dict[str, float]] = {}
    for block in fit.bank.blocks:
        if block.model.has_unit_slope or block.model.shared or not block.model.can_be_rescaled:
            continue
        names = list(block.model.constrain(block.u[:1]))
        if any(name.startswith("b") for name in names):  # intercepts say the same in another metric
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
    """Fit with moving and with constant abilities on the same part of the data, and score both on
    the rest: a frame.
    """
    train, test = split(data, share, by=by, seed=seed, **columns)
    still = estimator.with_options(bandwidth=np.inf)
    rows = {}
    for name, chosen in (("dynamic", estimator), ("static", still)):
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


FEW = 10  # people below which a difference has no error to be held against


@dataclass(frozen=True)
class StaticComparison:
    """A fit beside the same with constant abilities, each answer predicted without itself.

    Log loss of both.
    """

    fit: Fit  # the static one
    dynamic_loss: float
    static_loss: float
    se: float  # of the difference, over people
    people: int

    def facts(self) -> dict[str, float]:
        """The numbers."""
        return {
            "dynamic_log_loss": self.dynamic_loss,
            "static_log_loss": self.static_loss,
            "se": self.se,
        }

    def told(self) -> str:
        """In words."""
        gain = self.static_loss - self.dynamic_loss
        if self.people < FEW:
            return (
                f"With {self.people} people it cannot be told whether knowing when helps (log "
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
