"""The population's distribution over a list of priors: learned by EM over people, from each one's evidence under each prior."""

import numpy as np

from dynaesti.arrays import Array

ROUNDS = 200


def population_weights(log_evidence: Array, log_prior: Array, pool: bool) -> tuple[Array, Array]:
    """(weights of each curve (priors, curves), population's prior weights).

    With `pool` the population's distribution over priors is learned by EM, the list's own prior counting as one curve more.
    """
    base = share = np.exp(log_prior - np.logaddexp.reduce(log_prior))
    for _ in range(ROUNDS if pool and share.size > 1 else 0):
        weights = _curve_weights(share, log_evidence)
        new = (base + weights.sum(axis=1)) / (1 + weights.shape[1])
        done = np.abs(new - share).max() < 1e-9
        share = new
        if done:
            break
    return _curve_weights(share, log_evidence), share


def log_list_prior(population: Array, log_prior: Array) -> float:
    """Log density of the population's weights, for which the list's own prior counts as one curve."""
    base = np.exp(log_prior - np.logaddexp.reduce(log_prior))
    return float(base @ np.log(np.maximum(population, 1e-300)))


def _curve_weights(share: Array, log_evidence: Array) -> Array:
    with np.errstate(divide="ignore"):
        logs = np.log(share)[:, None] + log_evidence
    return np.asarray(np.exp(logs - np.logaddexp.reduce(logs, axis=0)))
