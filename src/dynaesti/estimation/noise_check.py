"""Whether ability explains anything: the fit beside one in which nobody differs from anybody.

Coins get slopes too. Where the evidence for any ability is weak, the spread of abilities (in the
items' unit) is multiplied by the probability that there is any, as the average over both hypotheses
has it. Elsewhere that probability is 1 to many digits, and nothing changes. The population's mean
over time is not what is judged: it moves the responses as before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.interpolate import PchipInterpolator

from dynaesti.core import Array
from dynaesti.estimation.em import e_step
from dynaesti.estimation.people import EStepRequest, People
from dynaesti.estimation.population import PriorMixture
from dynaesti.model import ItemBank


@dataclass(frozen=True)
class NoiseSettings:
    """How evidence for any ability is measured."""

    clear: float = 12.0  # nats: beyond these odds of e¹² to 1 nothing is shrunk
    min_people: int = 10  # fewer cannot show whether they differ
    # A spread that is as good as none, relative to the fit's: the evidence changes with its square.
    # Smaller ones would make a cohort's rise hundreds of people's spreads, which no grid covers.
    none: float = 0.05
    # spreads at which the evidence is computed, relative to the fit's
    spreads: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
    # sd of the half-normal prior of slope × spread of abilities, where there is any ability
    usual: float = 2.0
    # nats by which kernels chosen for the data seem better than they are (coins, drawn dates: half
    # of those that seemed to show ability do no longer)
    choice: float = 1.0
    tolerance: float = 1e-3  # of expectation propagation


DEFAULT = NoiseSettings()


def probability_of_ability(
    people: People,
    sample: People,
    bank: ItemBank,
    priors: PriorMixture,
    settings: NoiseSettings = DEFAULT,
) -> float:
    """Probability that people differ at all, as likely as not before the data.

    Parameters
    ----------
    people : People
        Everyone.
    sample : People
        Some of them: where these alone leave no doubt, the others need not be asked.
    bank : ItemBank
    priors : PriorMixture
    settings : NoiseSettings

    Returns
    -------
    float
        1 where the scale is anchored or stated, and where people are too few to tell.
    """
    if not _can_be_judged(bank) or people.person_summary.n_people < settings.min_people:
        return 1.0
    of_sample = _evidence_by_spread(sample, bank, priors, settings)
    if of_sample(1.0) - of_sample(settings.none) > settings.clear:
        return 1.0
    evidence = _evidence_by_spread(people, bank, priors, settings)
    without = evidence(settings.none)
    if evidence(1.0) - without > settings.clear:
        return 1.0
    spreads = np.array([settings.none, *settings.spreads])
    gains = np.array([evidence(spread) for spread in spreads]) - without
    gains[1:] -= settings.choice * (not all(kernel.static for kernel in priors.kernels))
    odds = _bayes_factor(spreads, gains, _common_slope(bank) / settings.usual)
    return max(odds / (1.0 + odds), 2 * settings.none)


def with_spread(
    bank: ItemBank, priors: PriorMixture, spread: float
) -> tuple[ItemBank, PriorMixture]:
    """Items and population with abilities that spread less, or more, by a factor.

    The population's mean stays where it is, in the items' unit.
    """
    cohort = None if priors.cohort is None else priors.cohort.scaled(1.0 / spread)
    return bank.rescaled(0.0, float(np.log(spread))), replace(priors, cohort=cohort)


def _can_be_judged(bank: ItemBank) -> bool:
    """Whether the spread of abilities is learned, from responses in categories."""
    scale = bank.ability_scale
    return (
        not (scale.stated or scale.free_location)
        and all(block.free.all() for block in bank.blocks)
        and all(block.model.categorical and block.model.can_be_rescaled for block in bank.blocks)
    )


def _common_slope(bank: ItemBank) -> float:
    """Typical slope of the items × spread of abilities."""
    return float(np.exp(bank.log_slope())) * bank.ability_scale.scale


def _evidence_by_spread(
    people: People, bank: ItemBank, priors: PriorMixture, settings: NoiseSettings
) -> Callable[[float], float]:
    """Log evidence as a function of the spread of abilities, relative to the bank's."""

    def evidence(spread: float) -> float:
        scaled, prior = with_spread(bank, priors, spread)
        request = EStepRequest(settings.tolerance, with_counts=False)
        return e_step(people, scaled, prior, 0.0, request).log_evidence

    return evidence


def _bayes_factor(spreads: Array, gains: Array, unit: float) -> float:
    """Odds of a half-normal spread (sd 1 / unit) against none, from log evidences above none's."""
    x = np.linspace(spreads[0], spreads[-1], 2000)
    density = unit * np.sqrt(2 / np.pi) * np.exp(-0.5 * (unit * x) ** 2)
    return float(np.trapezoid(np.exp(PchipInterpolator(spreads, gains)(x)) * density, x))
