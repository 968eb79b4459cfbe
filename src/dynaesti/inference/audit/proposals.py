"""Adaptive importance sampling of points with a standard normal prior and any likelihood.

A quarter of the draws tries the first proposal. Where that fits badly, or where the likelihood may
have modes that it has not seen, the posterior is explored: particles from the prior move by
elliptical slice sampling while the power of the likelihood rises from 0 to 1. Mixtures of
multivariate t distributions are fitted to the particles, half way and at the end, then to draws
from these: to the posterior itself and to its square root, which is wide. (Otherwise a light tail
would depend on a handful of draws with large weights, which not every run has.) The result
consists of the last round alone: proposals are fitted to the draws before them, so that weights of
those would be biased (the log evidence by 0.015).
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import gammaln, logsumexp

from dynaesti.core import Array
from dynaesti.inference.audit.psis import smooth_weights
from dynaesti.inference.solvers.basis import lower_root, solve_lower

DOF = 7.0  # degrees of freedom of the t distributions: tails heavier than the posterior's


@dataclass(frozen=True)
class ProposalSettings:
    """How proposals are assessed, explored and fitted, with the reason for each number."""

    # The pilot is 1/4 of the draws, and so is the round before the last.
    pilot_divisor: int = 4
    min_pilot: int = 100  # draws; fewer cannot judge a proposal
    # The first proposal is kept if its effective draws are at least this fraction of those that a
    # normal target would leave (its tails cost draws by themselves), and Pareto k̂ is no larger.
    min_relative_ess: float = 0.7
    max_pareto_k: float = 0.7
    # pilot draws for each dimension; from fewer, no shapes are learned
    min_draws_per_dimension: int = 40
    # Exploration: a tenth of the draws are particles, within these bounds; moves of each particle
    # at each temperature.
    particles: tuple[int, int] = (500, 2000)
    moves: int = 2
    # Where so many do not reach the posterior, it is far narrower than the prior, and the proposal
    # that is found stays wider.
    max_temperatures: int = 40
    # weights of the first proposal and of the explored one in later ones
    first_weight: float = 0.1
    explored_weight: float = 0.2
    # powers of the posterior that mixtures are fitted to, and their weights
    powers: tuple[tuple[float, float], ...] = ((1.0, 0.7), (0.5, 0.3))
    # Each mixture has so many modes, and is fitted to so many draws by so many EM iterations.
    modes: int = 4
    resampled: int = 4000
    em_iterations: int = 8
    # fraction of a mode's covariance that is the mean of all modes; more where it has few draws
    shrinkage: float = 0.2


SETTINGS = ProposalSettings()


class LogLikelihood(Protocol):
    """Log-likelihood (n_draws,) of points (n_draws, n_dimensions)."""

    def __call__(self, points: Array) -> Array: ...


class StudentComponent(NamedTuple):
    """A multivariate t distribution as a component of a mixture."""

    weight: float  # in the mixture
    centre: Array  # (n_dimensions,)
    root: Array  # lower triangular root of its scale matrix

    def _squared_distance(self, points: Array) -> Array:
        """Squared Mahalanobis distance from the centre."""
        z = solve_lower(self.root, (points - self.centre).T)
        return np.asarray(np.einsum("ij,ij->j", z, z))

    def log_density(self, points: Array) -> Array:
        """Log of weight × density."""
        r = self.centre.size
        constant = (
            gammaln((DOF + r) / 2)
            - gammaln(DOF / 2)
            - 0.5 * r * np.log(DOF * np.pi)
            - np.log(np.diag(self.root)).sum()
        )
        return np.asarray(
            np.log(self.weight)
            + constant
            - 0.5 * (DOF + r) * np.log1p(self._squared_distance(points) / DOF)
        )

    def normal(self, points: Array) -> Array:
        """Log density of the normal distribution with this centre and scale, up to a constant."""
        return -0.5 * self._squared_distance(points)

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        """Antithetic draws (count, n_dimensions): each second one mirrors the one before it."""
        half = (count + 1) // 2
        z = (
            rng.standard_normal((half, self.centre.size))
            * np.sqrt(DOF / rng.chisquare(DOF, half))[:, None]
        )
        return np.asarray(
            self.centre
            + np.stack([z, -z], axis=1).reshape(2 * half, self.centre.size)[:count] @ self.root.T
        )


Proposal = tuple[StudentComponent, ...]


def adaptive_sample(
    log_likelihood: LogLikelihood,
    first: StudentComponent,
    count: int,
    rng: np.random.Generator,
    unimodal: bool = False,
) -> tuple[Array, Array]:
    """Draw points from the posterior by importance sampling.

    Parameters
    ----------
    log_likelihood : callable
        Log-likelihood (n_draws,) of points (n_draws, n_dimensions); the prior is standard normal.
    first : StudentComponent
        The first proposal.
    count : int
        Number of draws.
    rng : numpy.random.Generator
        Source of randomness.
    unimodal : bool, default False
        Whether the posterior has no other mode than the one that the proposal is for.

    Returns
    -------
    points : array (count, n_dimensions)
        The draws.
    log_weights : array (count,)
        Their log importance weights.
    """
    sample = _Sample(log_likelihood, rng)
    pilot = count // SETTINGS.pilot_divisor
    sample.add(pilot, (first,))
    if pilot < SETTINGS.min_pilot or (unimodal and _fits(sample, first)):
        sample.add(count - pilot, (first,))
        return sample.points, sample.log_weights
    particles = int(np.clip(count // 10, *SETTINGS.particles))
    explored = _explore(log_likelihood, first, particles, rng)
    last = _Sample(log_likelihood, rng)
    if pilot < SETTINGS.min_draws_per_dimension * first.centre.size:
        last.add(count, _mixture((0.5, [first]), (0.5, explored)))
        return last.points, last.log_weights
    kept = SETTINGS.first_weight
    sample.add(pilot, _mixture((kept, [first]), (1 - kept, explored)))
    found = SETTINGS.explored_weight
    fitted = sample.fitted(first.root)
    last.add(count, _mixture((kept, [first]), (found, explored), (1 - kept - found, fitted)))
    return last.points, last.log_weights


def _mixture(*parts: tuple[float, list[StudentComponent]]) -> Proposal:
    """A mixture of mixtures with these weights."""
    return tuple(
        mode._replace(weight=weight * mode.weight) for weight, modes in parts for mode in modes
    )


class _Sample:
    """Draws of several proposals, weighted against the mixture of all of them."""

    def __init__(self, log_likelihood: LogLikelihood, rng: np.random.Generator) -> None:
        self.log_likelihood = log_likelihood
        self.rng = rng
        self.points = np.empty((0, 0))
        self.log_posterior = np.empty(0)
        self.log_weights = np.empty(0)
        self.used: list[tuple[int, Proposal]] = []

    def add(self, count: int, proposal: Proposal) -> None:
        """Add draws of another proposal, and weight all draws anew."""
        if count == 0:
            return
        sizes = self.rng.multinomial(count, [mode.weight for mode in proposal])
        more = np.concatenate(
            [mode.draw(int(size), self.rng) for mode, size in zip(proposal, sizes, strict=True)]
        )
        log_prior = -0.5 * np.einsum("ij,ij->i", more, more) - 0.5 * more.shape[1] * np.log(
            2 * np.pi
        )
        self.log_posterior = np.concatenate(
            [self.log_posterior, log_prior + self.log_likelihood(more)]
        )
        self.points = np.concatenate([self.points, more]) if self.points.size else more
        self.used.append((count, proposal))
        logs = [
            np.log(size / len(self.points)) + mode.log_density(self.points)
            for size, modes in self.used
            for mode in modes
        ]
        self.log_weights = np.asarray(self.log_posterior - logsumexp(logs, axis=0))

    def fitted(self, scale: Array) -> list[StudentComponent]:
        """Modes fitted to the posterior and to its powers, which are wider."""
        found: list[StudentComponent] = []
        possible = np.flatnonzero(self.log_weights > -np.inf)
        for power, weight in SETTINGS.powers:
            p, _ = smooth_weights(
                self.log_weights[possible] + (power - 1.0) * self.log_posterior[possible]
            )
            chosen = self.points[self.rng.choice(possible, size=SETTINGS.resampled, p=p)]
            found += _fit_modes(chosen, scale, weight, self.rng)
        return found


def _explore(
    log_likelihood: LogLikelihood, first: StudentComponent, particles: int, rng: np.random.Generator
) -> list[StudentComponent]:
    """Modes fitted to particles that moved from the prior to the posterior.

    Half of them are fitted where the power of the likelihood passed 1/2, half at the end.
    """
    points = rng.standard_normal((particles, first.centre.size))
    logs = log_likelihood(points)
    possible = np.flatnonzero(logs > -np.inf)
    if not possible.size:
        return [first]
    chosen = rng.choice(possible, particles) if possible.size < particles else possible
    points = points[chosen]
    logs = logs[chosen]
    half = points
    power = 0.0
    for _ in range(SETTINGS.max_temperatures):
        if power == 1.0:
            break
        step = _next_step(logs, 1.0 - power)
        p = np.exp(step * (logs - logs.max()))
        chosen = np.searchsorted(
            np.cumsum(p), (np.arange(particles) + rng.random()) * (p.sum() / particles)
        ).clip(max=particles - 1)
        points = points[chosen]
        logs = logs[chosen]
        before = power
        power = power + step
        for _ in range(SETTINGS.moves):
            points, logs = _slice_move(log_likelihood, points, logs, power, rng)
        half = points if before < 0.5 else half
    return [*_fit_modes(points, first.root, 0.5, rng), *_fit_modes(half, first.root, 0.5, rng)]


def _next_step(logs: Array, most: float) -> float:
    """Largest increase of the power, up to `most`, that leaves half the particles effective."""
    step = most
    while True:
        p = np.exp(step * (logs - logs.max()))
        if p.sum() ** 2 >= 0.5 * p.size * np.sum(p**2):
            return step
        step *= 0.7


def _slice_move(
    log_likelihood: LogLikelihood,
    points: Array,
    logs: Array,
    power: float,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Move every particle once by elliptical slice sampling (Murray, Adams and MacKay, 2010).

    The target is prior × likelihood to a power; `logs` are the particles' log-likelihoods.
    """
    size = len(points)
    level = power * logs + np.log(rng.random(size))
    other = rng.standard_normal(points.shape)
    angle = rng.uniform(0.0, 2 * np.pi, size)
    low = angle - 2 * np.pi
    high = angle.copy()
    moved = points.copy()
    found = logs.copy()
    todo = np.arange(size)
    # the slice contains the point itself, so brackets shrink to it at worst
    while todo.size and (high - low)[todo].max() > 1e-9:
        turn = angle[todo]
        trial = points[todo] * np.cos(turn)[:, None] + other[todo] * np.sin(turn)[:, None]
        value = log_likelihood(trial)
        fine = power * value > level[todo]
        moved[todo[fine]] = trial[fine]
        found[todo[fine]] = value[fine]
        todo = todo[~fine]
        turn = turn[~fine]
        low[todo] = np.where(turn < 0, turn, low[todo])
        high[todo] = np.where(turn < 0, high[todo], turn)
        angle[todo] = rng.uniform(low[todo], high[todo])
    return moved, found


def _fits(sample: _Sample, first: StudentComponent) -> bool:
    """Whether the first proposal is good enough, judged by its draws.

    Its heavy tails reduce the effective sample size, more so in more dimensions. So its effective
    sample size is compared with that for a normal target.
    """
    p, k = smooth_weights(sample.log_weights)
    normal, _ = smooth_weights(first.normal(sample.points) - first.log_density(sample.points))
    effective = np.sum(normal**2) >= SETTINGS.min_relative_ess * np.sum(p**2)
    return bool(effective and k <= SETTINGS.max_pareto_k)


def _fit_modes(
    points: Array, scale: Array, total_weight: float, rng: np.random.Generator
) -> list[StudentComponent]:
    """Fit a mixture to points by a few iterations of EM, covariances shrunk to their mean.

    Parameters
    ----------
    points : array (n_points, n_dimensions)
        Draws, all of the same weight.
    scale : array (n_dimensions, n_dimensions)
        Root of a scale matrix; a thousandth of that matrix is the least covariance.
    total_weight : float
        Weight of all modes together.
    rng : numpy.random.Generator
        Source of randomness.
    """
    count, r = points.shape
    floor = 1e-3 * scale @ scale.T
    owner = _nearest_seed(
        solve_lower(lower_root(np.cov(points.T).reshape(r, r) + floor), points.T).T, rng
    )
    n_modes = SETTINGS.modes
    responsibility = 0.9 * np.eye(n_modes)[owner] + 0.1 / n_modes
    modes: list[StudentComponent] = []
    for _ in range(SETTINGS.em_iterations):
        weight = responsibility.sum(axis=0)
        centres = (responsibility.T @ points) / weight[:, None]
        spread = np.stack(
            [
                ((points - c) * responsibility[:, k : k + 1]).T @ (points - c)
                for k, c in enumerate(centres)
            ]
        )
        within = spread.sum(axis=0) / weight.sum() + floor
        least = SETTINGS.shrinkage
        shrink = least + (1 - least) * 3 * r / (weight + 3 * r)
        cov = ((1 - shrink) / weight)[:, None, None] * spread + shrink[:, None, None] * within
        modes = [
            StudentComponent(float(w / count), c, lower_root(v))
            for w, c, v in zip(weight, centres, cov, strict=True)
        ]
        logs = np.stack([mode.log_density(points) for mode in modes], axis=1)
        responsibility = np.exp(logs - logsumexp(logs, axis=1, keepdims=True)) + 1e-12
    total = sum(mode.weight for mode in modes)
    return [mode._replace(weight=total_weight * mode.weight / total) for mode in modes]


def _nearest_seed(points: Array, rng: np.random.Generator) -> Array:
    """For each point, the nearest of a few points far apart, chosen as in k-means++."""
    squared = np.full(len(points), np.inf)  # distance to the nearest seed
    gaps = np.empty((SETTINGS.modes, len(points)))
    for k in range(SETTINGS.modes):
        apart = k > 0 and squared.sum() > 0.0  # else all points are equal
        probability = squared / squared.sum() if apart else None
        seed = rng.choice(len(points), p=probability) if apart else rng.integers(len(points))
        gaps[k] = ((points - points[seed]) ** 2).sum(axis=1)
        squared = np.minimum(squared, gaps[k])
    return np.asarray(gaps.argmin(axis=0))
