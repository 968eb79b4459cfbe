"""Adaptive importance sampling of weights with a standard normal prior, where a likelihood makes
them anything but normal.

A quarter of the draws tries the first proposal. Where that fits badly, or where the likelihood may
have humps that it has never seen, the posterior is explored: particles from the prior move by
elliptical slice sampling while the likelihood is turned on bit by bit. Mixtures of multivariate t's
are fitted to the particles, half way and at the end, then to draws from these: to the posterior
itself and to its square root, which is wide. (A thin tail far out would else be left to a handful
of heavy draws, which one run has and the next one lacks.) The result is the last round's alone:
proposals are fitted to the draws before them, so that weights of these would be biased (the log
evidence by 0.015).
"""

from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import gammaln, logsumexp

from dynaesti.core import Array
from dynaesti.inference.audit.psis import smooth_weights
from dynaesti.inference.solvers.basis import lower_root, solve_lower

TAILS = 7.0  # degrees of freedom
# a proposal needs no better one if so large a part of the draws is effective of what a normal
# target would leave,
FITS = 0.7
HEAVY = 0.7
# and Pareto k̂ is no larger
PART = 4  # of the draws, one goes to each round before the last
# that explore: a tenth of the draws within these bounds; and their moves at each temperature
PARTICLES = (500, 2000)
MOVES = 2
# at most: where these do not reach the posterior, it is far narrower than the prior, and what is
# found stays wider
TEMPERATURES = 40
# shares of the first proposal and of the explored one in those that follow
KEPT = 0.1
FOUND = 0.2
FITTED = (
    (1.0, 0.7),
    (0.5, 0.3),
)  # powers of the posterior that humps are fitted to, and their shares
# to each power; draws that they are fitted to, and steps of the fit
HUMPS = 4
RESAMPLED = 4000
EM_STEPS = 8
LEAN = 0.2  # part of a hump's covariance that is all humps' mean; more where few draws speak
FEWEST = 40  # draws to a dimension for shapes to be learned from
JUDGED = 100  # draws by which a proposal can be judged


class LogLikelihood(Protocol):
    """Log likelihood of points (draws, dimensions)."""

    def __call__(self, points: Array) -> Array: ...


class StudentComponent(NamedTuple):
    """A multivariate t of a mixture."""

    share: float
    centre: Array
    root: Array  # lower triangular, of its scale matrix

    def _square(self, points: Array) -> Array:
        """Squared distance from the centre, by the scale matrix."""
        away = solve_lower(self.root, (points - self.centre).T)
        return np.asarray(np.einsum("ij,ij->j", away, away))

    def log_density(self, points: Array) -> Array:
        """Log of share × density."""
        r = self.centre.size
        constant = (
            gammaln((TAILS + r) / 2)
            - gammaln(TAILS / 2)
            - 0.5 * r * np.log(TAILS * np.pi)
            - np.log(np.diag(self.root)).sum()
        )
        return np.asarray(
            np.log(self.share)
            + constant
            - 0.5 * (TAILS + r) * np.log1p(self._square(points) / TAILS)
        )

    def normal(self, points: Array) -> Array:
        """Log density of the normal distribution with the same centre and scale, but for a
        constant.
        """
        return -0.5 * self._square(points)

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        """Draws, every other one the mirror image of the one before: means are steadier so."""
        half = (count + 1) // 2
        z = (
            rng.standard_normal((half, self.centre.size))
            * np.sqrt(TAILS / rng.chisquare(TAILS, half))[:, None]
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
    one_hump: bool = False,
) -> tuple[Array, Array]:
    """`count` points, and their log importance weights.

    `one_hump`: the posterior has no other than the one that the proposal is for.
    """
    sample = _Sample(log_likelihood, rng)
    pilot = count // PART
    sample.add(pilot, (first,))
    if pilot < JUDGED or (one_hump and _fits(sample, first)):
        sample.add(count - pilot, (first,))
        return sample.points, sample.log_weights
    explored = _explored(log_likelihood, first, int(np.clip(count // 10, *PARTICLES)), rng)
    last = _Sample(log_likelihood, rng)
    if pilot < FEWEST * first.centre.size:  # too few to learn shapes from
        last.add(count, _shared((0.5, [first]), (0.5, explored)))
        return last.points, last.log_weights
    sample.add(pilot, _shared((KEPT, [first]), (1 - KEPT, explored)))
    last.add(
        count,
        _shared((KEPT, [first]), (FOUND, explored), (1 - KEPT - FOUND, sample.fitted(first.root))),
    )
    return last.points, last.log_weights


def _shared(*parts: tuple[float, list[StudentComponent]]) -> Proposal:
    """Mixtures, each of shares that sum to 1, put together in these shares."""
    return tuple(
        hump._replace(share=share * hump.share) for share, humps in parts for hump in humps
    )


class _Sample:
    """Draws of several proposals, weighed against the mixture of all of them."""

    def __init__(self, log_likelihood: LogLikelihood, rng: np.random.Generator) -> None:
        self.log_likelihood = log_likelihood
        self.rng = rng
        self.points = np.empty((0, 0))
        self.log_posterior = np.empty(0)
        self.log_weights = np.empty(0)
        self.used: list[tuple[int, Proposal]] = []

    def add(self, count: int, proposal: Proposal) -> None:
        """So many draws of another proposal."""
        if count == 0:
            return
        sizes = self.rng.multinomial(count, [hump.share for hump in proposal])
        more = np.concatenate(
            [hump.draw(int(size), self.rng) for hump, size in zip(proposal, sizes, strict=True)]
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
            np.log(size / len(self.points)) + hump.log_density(self.points)
            for size, humps in self.used
            for hump in humps
        ]
        self.log_weights = np.asarray(self.log_posterior - logsumexp(logs, axis=0))

    def fitted(self, scale: Array) -> list[StudentComponent]:
        """Humps of the posterior and of its wide powers."""
        found: list[StudentComponent] = []
        possible = np.flatnonzero(self.log_weights > -np.inf)
        for power, share in FITTED:
            p, _ = smooth_weights(
                self.log_weights[possible] + (power - 1.0) * self.log_posterior[possible]
            )
            chosen = self.points[self.rng.choice(possible, size=RESAMPLED, p=p)]
            found += _fit_humps(chosen, scale, share, self.rng)
        return found


def _explored(
    log_likelihood: LogLikelihood, first: StudentComponent, particles: int, rng: np.random.Generator
) -> list[StudentComponent]:
    """Humps fitted to particles that went from the prior to the posterior.

    Where half of the likelihood was on, and at the end.
    """
    points = rng.standard_normal((particles, first.centre.size))
    logs = log_likelihood(points)
    possible = np.flatnonzero(logs > -np.inf)
    if not possible.size:
        return [first]
    at = rng.choice(possible, particles) if possible.size < particles else possible
    points, logs, power, half = points[at], logs[at], 0.0, points[at]
    for _ in range(TEMPERATURES):
        if power == 1.0:
            break
        step = _next_step(logs, 1.0 - power)
        p = np.exp(step * (logs - logs.max()))
        at = np.searchsorted(
            np.cumsum(p), (np.arange(particles) + rng.random()) * (p.sum() / particles)
        ).clip(max=particles - 1)
        points = points[at]
        logs = logs[at]
        before = power
        power = power + step
        for _ in range(MOVES):
            points, logs = _slice_move(log_likelihood, points, logs, power, rng)
        half = points if before < 0.5 else half
    return [*_fit_humps(points, first.root, 0.5, rng), *_fit_humps(half, first.root, 0.5, rng)]


def _next_step(logs: Array, most: float) -> float:
    """How much more of the likelihood leaves half of the particles effective."""
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
    """One elliptical slice move of every particle (Murray, Adams and MacKay, 2010) under prior ×
    likelihood to a power.
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
    while (
        todo.size and (high - low)[todo].max() > 1e-9
    ):  # the slice holds the point itself, so brackets shrink to it at worst
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
    """Whether draws of the first proposal say that it needs no better one.

    Its tails cost draws by themselves, more in more dimensions.
    """
    (p, k), (normal, _) = (
        smooth_weights(sample.log_weights),
        smooth_weights(first.normal(sample.points) - first.log_density(sample.points)),
    )
    return bool(np.sum(normal**2) >= FITS * np.sum(p**2) and k <= HEAVY)


def _fit_humps(
    points: Array, scale: Array, share: float, rng: np.random.Generator
) -> list[StudentComponent]:
    """A mixture fitted to points by a few steps of EM, its covariances leant on their mean.

    `scale` is the root of a floor's.

    `share` is what all humps have together.
    """
    count, r = points.shape
    floor = 1e-3 * scale @ scale.T
    owner = _spread_out(
        solve_lower(lower_root(np.cov(points.T).reshape(r, r) + floor), points.T).T, rng
    )
    part = 0.9 * np.eye(HUMPS)[owner] + 0.1 / HUMPS
    humps: list[StudentComponent] = []
    for _ in range(EM_STEPS):
        weight = part.sum(axis=0)
        centres = (part.T @ points) / weight[:, None]
        spread = np.stack(
            [((points - c) * part[:, k : k + 1]).T @ (points - c) for k, c in enumerate(centres)]
        )
        within = spread.sum(axis=0) / weight.sum() + floor
        lean = LEAN + (1 - LEAN) * 3 * r / (weight + 3 * r)
        cov = ((1 - lean) / weight)[:, None, None] * spread + lean[:, None, None] * within
        humps = [
            StudentComponent(float(w / count), c, lower_root(v))
            for w, c, v in zip(weight, centres, cov, strict=True)
        ]
        logs = np.stack([hump.log_density(points) for hump in humps], axis=1)
        part = np.exp(logs - logsumexp(logs, axis=1, keepdims=True)) + 1e-12
    total = sum(hump.share for hump in humps)
    return [hump._replace(share=share * hump.share / total) for hump in humps]


def _spread_out(points: Array, rng: np.random.Generator) -> Array:
    """The nearest of a few far apart points (k-means++ beginnings) for each point."""
    away = np.full(len(points), np.inf)
    gaps = np.empty((HUMPS, len(points)))
    for k in range(HUMPS):
        far = k > 0 and away.sum() > 0.0  # else all points are alike
        at = rng.choice(len(points), p=away / away.sum()) if far else rng.integers(len(points))
        gaps[k] = ((points - points[at]) ** 2).sum(axis=1)
        away = np.minimum(away, gaps[k])
    return np.asarray(gaps.argmin(axis=0))
