"""The population's distribution over a list of priors.

Learned by EM over people, from each one's evidence under each prior.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dynaesti.core import Array, Ints, jit
from dynaesti.model import Kernel

ROUNDS = 200  # at most


def estimate_population_weights(
    log_evidence: Array, log_prior: Array, pool: bool
) -> tuple[Array, Array]:
    """(weights of each curve (priors, curves), population's prior weights).

    With `pool` the latter are learned.
    """
    share = (
        estimate_mixing_weights(log_evidence, log_prior)
        if pool
        else np.exp(log_prior - np.logaddexp.reduce(log_prior))
    )
    return posterior_weights(share, log_evidence), share


def estimate_mixing_weights(log_evidence: Array, log_prior: Array) -> Array:
    """The population's distribution over priors, learned by EM.

    The list's own prior counts as one curve more.
    """
    base = np.exp(log_prior - np.logaddexp.reduce(log_prior))
    if base.size == 1:
        return np.asarray(base)
    return _pooled(
        np.ascontiguousarray(np.exp(log_evidence - log_evidence.max(axis=0)).T), base, ROUNDS
    )


@jit
def _pooled(relative: Array, base: Array, rounds: int) -> Array:
    """EM for the shares, from each curve's evidences (curves, priors) relative to its best."""
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
    """Log evidence of all curves together, each mixing the priors by the population's shares."""
    with np.errstate(divide="ignore"):
        return float(np.logaddexp.reduce(np.log(share)[:, None] + log_evidence, axis=0).sum())


def select_priors_greedily(log_evidence: Array, log_prior: Array, most: int, worth: float) -> Ints:
    """A few priors that serve the population nearly as well as the whole list, in its order.

    One after the other, the one is taken that adds most to the evidence of all curves together, as
    long as it adds `worth` nats. The heaviest ones would be neighbours of each other, and leave out
    what fewer people need, but need more.
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
    """Log density of the population's weights, for which the list's own prior counts as one curve."""
    base = np.exp(log_prior - np.logaddexp.reduce(log_prior))
    return float(base @ np.log(np.maximum(population, 1e-300)))


def posterior_weights(share: Array, log_evidence: Array) -> Array:
    """Weights of the priors for each curve (priors, curves), given the population's."""
    with np.errstate(divide="ignore"):
        logs = np.log(share)[:, None] + log_evidence
    return np.asarray(np.exp(logs - np.logaddexp.reduce(logs, axis=0)))


@dataclass(frozen=True)
class PriorMixture:
    """Kernels that a population mixes."""

    kernels: tuple[Kernel, ...]
    log_prior: Array  # (n_kernels,) log masses of the grid points that they stand for
    weights: Array  # (n_kernels,) in the population, as far as known

    @staticmethod
    def single(kernel: Kernel) -> PriorMixture:
        """One kernel for everyone."""
        return PriorMixture((kernel,), np.zeros(1), np.ones(1))

    def select(self, chosen: Ints) -> PriorMixture:
        """Some of the kernels."""
        return PriorMixture(
            tuple(self.kernels[k] for k in chosen),
            self.log_prior[chosen],
            self.weights[chosen] / self.weights[chosen].sum(),
        )

    def append(self, other: PriorMixture) -> PriorMixture:
        """With further kernels, of the weight that they have among their own."""
        weights = np.append(self.weights, other.weights)
        return PriorMixture(
            (*self.kernels, *other.kernels),
            np.append(self.log_prior, other.log_prior),
            weights / weights.sum(),
        )

    def pruned(self, min_weight: float) -> PriorMixture:
        """Without kernels that hardly anyone uses: they cost time."""
        used = np.flatnonzero(self.weights > min_weight)
        return self if used.size == len(self.kernels) else self.select(used)

    def reweighted(self, log_evidence: Array) -> PriorMixture:
        """With the population's weights learned from everyone's log evidence (n_kernels, n_people)."""
        return replace(self, weights=estimate_mixing_weights(log_evidence, self.log_prior))

    def log_evidence(self, log_evidence: Array) -> float:
        """Log evidence of everyone together, from each one's under each kernel."""
        return mixture_log_evidence(log_evidence, self.weights)

    def log_prior_of_weights(self) -> float:
        """Log density of the population's weights."""
        return log_prior_of_weights(self.weights, self.log_prior)
