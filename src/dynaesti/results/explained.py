"""How much ability explains: reliability with its interval, and the fit beside items alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import f as f_distribution

from dynaesti.core import person_error
from dynaesti.inference import Marginals
from dynaesti.results.abilities import people_and_times
from dynaesti.results.frames import IDENTITY
from dynaesti.results.latent import asked_of, predicted

if TYPE_CHECKING:
    from dynaesti.results.fit import Fit

LEAST = 1e-12  # smallest probability: logarithms stay finite
PRIOR_COUNT = 0.5  # of each category, where its share among an item's responses is predicted
# answers up to which a summary predicts each without itself: beyond, that takes a while
MANY_ANSWERS = 300_000


def reliability(fit: Fit, at: Any = None) -> float:
    """Share of the variance of ability that the answers explain; see `Fit.reliability`.

    People are compared with each other, so that the error of the mean that they share is left out.
    """
    person, offsets = people_and_times(fit, at, None)
    asked = asked_of(person, offsets)
    parts = [predicted(fit, k, asked, fit.prior_mean) for k in range(len(fit.kernels))]
    about_cohort = Marginals(
        fit.weights[:, person],
        np.array([part.mean for part in parts]),
        np.sqrt(np.array([part.variance for part in parts])),
    )
    return 1.0 - float((about_cohort.sd(IDENTITY) ** 2).mean())


def reliability_interval(fit: Fit, level: float) -> tuple[float, float]:
    """Interval of the reliability by Feldt's distribution of coefficients of reliability.

    Of n people with k answers each, (1 − reliability) / (1 − its estimate) is F-distributed with
    n − 1 and (n − 1)(k − 1) degrees of freedom. Abilities that move show more than one constant a
    person, so for them the interval is rather too wide.
    """
    unexplained = 1.0 - reliability(fit)
    people = max(fit.responses.people.size - 1, 1)
    answers = max(len(fit.responses) / fit.responses.people.size, 2.0)
    tails = np.array([0.5 + level / 2, 0.5 - level / 2])
    lower, upper = 1.0 - unexplained * f_distribution.ppf(tails, people, people * (answers - 1))
    if fit.ability_probability < 0.5 + level / 2:  # that nobody differs is possible too
        lower = 0.0
    return float(np.clip(lower, 0.0, 1.0)), float(np.clip(upper, 0.0, 1.0))


@dataclass(frozen=True)
class ItemsAlone:
    """A fit beside its items alone: each answer predicted by its item's shares of responses.

    Parameters
    ----------
    fit_loss, alone_loss : float
        Log loss of the fit, each answer predicted without itself, and of the items alone.
    se : float
        Standard error of the difference, over people.
    """

    fit_loss: float
    alone_loss: float
    se: float

    @property
    def gain(self) -> float:
        """How much smaller the log loss of the fit is."""
        return self.alone_loss - self.fit_loss

    @property
    def explains(self) -> bool:
        """Whether ability explains answers beyond doubt."""
        return self.gain > 2 * self.se

    def verdict(self) -> str:
        """What knowing people adds to knowing items, in one sentence."""
        figures = (
            f"each answer predicted without itself, the log loss is {self.fit_loss:.4f}, and "
            f"{self.alone_loss:.4f} by the items alone (difference {self.gain:+.4f} ± "
            f"{self.se:.4f})."
        )
        if self.explains:
            return f"Knowing who answers helps: {figures}"
        if self.gain > self.se:
            return f"Knowing who answers may help, but so few answers cannot show it: {figures}"
        return f"Ability explains nothing that the items alone do not: {figures}"


def items_alone(fit: Fit) -> ItemsAlone | None:
    """Compare a fit with its items alone; None where no item's responses are categories.

    The shares of an item's responses are those of all its answers, as its parameters in the fit
    are.
    """
    responses = fit.responses
    found = fit.leave_one_out[0]
    known = np.flatnonzero((found.category >= 0) & np.isfinite(found.given))
    if known.size < 2:
        return None
    item = responses.item[known]
    code = found.category[known]
    counts = np.zeros((responses.items.size, int(code.max()) + 1))
    np.add.at(counts, (item, code), 1.0)
    categories = (~np.isnan(found.chances)).sum(axis=1)[known]
    share = (counts[item, code] + PRIOR_COUNT) / (
        counts.sum(axis=1)[item] + PRIOR_COUNT * categories
    )
    losses = [-np.log(np.maximum(p, LEAST)) for p in (found.given[known], share)]
    return ItemsAlone(
        float(losses[0].mean()),
        float(losses[1].mean()),
        person_error(losses[1] - losses[0], responses.person[known]),
    )


def explained_sentences(fit: Fit) -> list[str]:
    """Reliability, whether there is any ability, and the fit beside items alone, in words."""
    lower, upper = reliability_interval(fit, 0.95)
    out = [
        f"Reliability at the answers: {reliability(fit):.2f} (95 %: {lower:.2f} to {upper:.2f})."
    ]
    if fit.ability_probability < 0.95:
        out.append(
            f"These answers hardly show that people differ (probability "
            f"{fit.ability_probability:.2f}): differences between them are shrunk accordingly."
        )
    alone = items_alone(fit) if len(fit.responses) <= MANY_ANSWERS else None
    return out if alone is None else [*out, alone.verdict()]
