"""The population's distribution over a list of priors.

It is learned by EM over people, from the evidence of each person under each prior.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dynaesti.core import Array, Ints, jit
from dynaesti.model import Cohort, Effects, Kernel

ROUNDS = 200  # largest number of EM iterations


def estimate_population_weights(
    log_evidence: Array, log_prior: Array, pool: bool
) -> tuple[Array, Array]:
    """Weights of the priors for each curve, and in the population.

    Parameters
    ----------
    log_evidence : array (n_priors, n_curves)
    log_prior : array (n_priors,)
        Log prior masses of the list.
    pool : bool
        Whether the population's weights are learned; else they are the prior masses.

    Returns
    -------
    weights : array (n_priors, n_curves)
    population : array (n_priors,)
    """
    share = (
        estimate_mixing_weights(log_evidence, log_prior)
        if pool
        else np.exp(log_prior - np.logaddexp.reduce(log_prior))
    )
    return posterior_weights(share, log_evidence), share


def estimate_mixing_weights(log_evidence: Array, log_prior: Array) -> Array:
    """The population's distribution over priors, learned by EM.

    The prior masses of the list count as one more curve.
    """
    base = np.exp(log_prior - np.logaddexp.reduce(log_prior))
    if base.size == 1:
        return np.asarray(base)
    return _pooled(
        np.ascontiguousarray(np.exp(log_evidence - log_evidence.max(axis=0)).T), base, ROUNDS
    )


@jit
def _pooled(relative: Array, base: Array, rounds: int) -> Array:
    """EM for the weights, from evidences (n_curves, n_priors) relative to each curve's best."""
    curves, priors = relative.shape
    share = base.copy()
    for _ in range(rounds):
        total = base.copy()
        for c in range(curves):
            row = relative[c]
            s = 0.0
            for k in range(priors):
                s += share[k] * row[k]
            s = 1.0 / max(s, 1e-300)
            for k in range(priors):
                total[k] += share[k] * row[k] * s
        worst = 0.0
        for k in range(priors):
            new = total[k] / (1.0 + curves)
            worst = max(worst, abs(new - share[k]))
            share[k] = new
        if worst < 1e-9:
            break
    return share


def mixture_log_evidence(log_evidence: Array, share: Array) -> float:
    """Log evidence of all curves together, each a mixture of the priors with these weights."""
    with np.errstate(divide="ignore"):
        return float(np.logaddexp.reduce(np.log(share)[:, None] + log_evidence, axis=0).sum())


def select_priors_greedily(log_evidence: Array, log_prior: Array, most: int, worth: float) -> Ints:
    """A few priors with nearly the evidence of the whole list, by greedy forward selection.

    Each step adds the prior that increases the evidence of all curves together most, as long as it
    adds at least `worth` nats. (The priors of largest weight would be neighbours of each other, and
    leave out those that fewer people need, but need more.)

    Returns
    -------
    int array
        Indices in the list, rising; at most `most`.
    """

    def evidence(chosen: list[int]) -> float:
        return mixture_log_evidence(
            log_evidence[chosen], estimate_mixing_weights(log_evidence[chosen], log_prior[chosen])
        )

    picked = [int((log_evidence.sum(axis=1) + log_prior).argmax())]
    so_far = evidence(picked)
    while len(picked) < min(most, len(log_prior)):
        gains = [
            -np.inf if k in picked else evidence([*picked, k]) - so_far
            for k in range(len(log_prior))
        ]
        if not max(gains) > worth:
            break
        picked.append(int(np.argmax(gains)))
        so_far += max(gains)
    return np.sort(np.array(picked, dtype=np.int64))


def log_prior_of_weights(population: Array, log_prior: Array) -> float:
    """Log density of the population's weights; the list's prior masses count as one curve."""
    base = np.exp(log_prior - np.logaddexp.reduce(log_prior))
    return float(base @ np.log(np.maximum(population, 1e-300)))


def posterior_weights(share: Array, log_evidence: Array) -> Array:
    """Weights of the priors for each curve (n_priors, n_curves), given those in the population."""
    with np.errstate(divide="ignore"):
        logs = np.log(share)[:, None] + log_evidence
    return np.asarray(np.exp(logs - np.logaddexp.reduce(logs, axis=0)))


@dataclass(frozen=True)
class PriorMixture:
    """The prior of everyone's curve: kernels that a population mixes, and its mean over time."""

    kernels: tuple[Kernel, ...]
    log_prior: Array  # (n_kernels,) log prior masses of their grid points
    weights: Array  # (n_kernels,) present estimate of their weights in the population
    cohort: Cohort | None = None  # the population's mean; None: 0 at all times

    @property
    def effects(self) -> Effects | None:
        """Columns of effects on the population's mean, where there are any."""
        return None if self.cohort is None else self.cohort.effects

    @staticmethod
    def single(kernel: Kernel, cohort: Cohort | None = None) -> PriorMixture:
        """One kernel for everyone."""
        return PriorMixture((kernel,), np.zeros(1), np.ones(1), cohort)

    def reflected(self) -> PriorMixture:
        """The prior on the reflected scale, θ → −θ."""
        return replace(self, cohort=None if self.cohort is None else self.cohort.reflected())

    def merges_instants(self, kernel: Kernel) -> bool:
        """Whether a person's instants are one site under a kernel: ability is a single number."""
        return kernel.static and self.cohort is None

    def select(self, chosen: Ints) -> PriorMixture:
        """The mixture of some of the kernels."""
        return PriorMixture(
            tuple(self.kernels[k] for k in chosen),
            self.log_prior[chosen],
            self.weights[chosen] / self.weights[chosen].sum(),
            self.cohort,
        )

    def append(self, other: PriorMixture) -> PriorMixture:
        """The mixture with the kernels of another appended; weights are normalised anew."""
        weights = np.append(self.weights, other.weights)
        return PriorMixture(
            (*self.kernels, *other.kernels),
            np.append(self.log_prior, other.log_prior),
            weights / weights.sum(),
            self.cohort,
        )

    def pruned(self, min_weight: float) -> PriorMixture:
        """The mixture without kernels of little weight, to save time."""
        used = np.flatnonzero(self.weights > min_weight)
        return self if used.size == len(self.kernels) else self.select(used)

    def reweighted(self, log_evidence: Array) -> PriorMixture:
        """The mixture with weights learned from log evidences (n_kernels, n_people)."""
        return replace(self, weights=estimate_mixing_weights(log_evidence, self.log_prior))

    def log_evidence(self, log_evidence: Array) -> float:
        """Log evidence of all people together, from log evidences (n_kernels, n_people)."""
        return mixture_log_evidence(log_evidence, self.weights)

    def log_prior_of_weights(self) -> float:
        """Log density of the population's weights."""
        return log_prior_of_weights(self.weights, self.log_prior)
