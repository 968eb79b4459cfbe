"""Several categories: graded, partial credit, rating scale, nominal, and partial credit built
outward from par.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit, logsumexp

from dynaesti.core import Array, Bools, jit
from dynaesti.model.items.base import (
    DIFFICULTY,
    INTERCEPT,
    LOG_GAP,
    LOG_SLOPE,
    SLOPE,
    ItemModel,
    NormalPrior,
    columns,
    log_odds,
    numbered,
)


def log_between(above: Array, y: Array) -> Array:
    """log(σ(u_y) − σ(u_{y+1})) for falling u = logit P(Y ≥ k), k = 1…K, with u_0 = ∞ and u_{K+1} =
    −∞.
    """
    ends = np.full((*above.shape[:-1], 1), np.inf)
    padded = np.concatenate([ends, above, -ends], axis=-1)
    chosen = np.broadcast_to(y, above.shape[:-1]).astype(np.int64)[..., None]
    upper = np.take_along_axis(padded, chosen, axis=-1)[..., 0]
    lower = np.take_along_axis(padded, chosen + 1, axis=-1)[..., 0]
    # σ(u) − σ(l) = σ(u) σ(−l) (1 − e^{l−u}): each factor keeps its digits in both tails
    return np.asarray(log_expit(upper) + log_expit(-lower) + np.log(-np.expm1(lower - upper)))


def _tail_shares(share: Array) -> Array:
    """Shares of the answers at or above each category but the lowest, kept apart."""
    smooth = (share + 0.01) / (share + 0.01).sum(axis=1, keepdims=True)
    return np.asarray(smooth[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:])


@dataclass(frozen=True)
class Graded(ItemModel):
    """Samejima's graded response: P(y ≥ k | θ) = σ(a(θ − b_k)), thresholds b rising.

    Unconstrained: log a, b₁ and the logs of the gaps between thresholds; when signed, the slope and
    the same for a·b_k.
    """

    name = "GRM"

    def parameter_names(self, size: int) -> tuple[str, ...]:
        first = ("slope", "threshold1") if self.signed else ("log_a", "b1")
        return (*first, *(f"log_gap{k}" for k in range(2, size)))

    def priors(self, size: int) -> tuple[NormalPrior, ...]:
        if self.signed:
            return (SLOPE, INTERCEPT, *(NormalPrior(0.0, 1.0),) * (size - 2))
        return (LOG_SLOPE, DIFFICULTY, *(LOG_GAP,) * (size - 2))

    def initial(self, share: Array, slope: Array, reverse: Bools) -> Array:
        slope = slope * (1.0 if not self.signed else np.where(reverse, -1.0, 1.0))
        flat = np.sqrt(1 + slope**2 / 3)
        at = (
            -log_odds(_tail_shares(share))
            * flat[:, None]
            / (1.0 if self.signed else slope[:, None])
        )
        gaps = np.log(np.maximum(np.diff(at, axis=1), 0.05))
        return np.concatenate(
            [(slope if self.signed else np.log(slope))[:, None], at[:, :1], gaps], axis=1
        )

    def _line(self, u: Array) -> tuple[Array, Array]:
        """Slope (items,) and thresholds (items, K) on the logit scale.

        P(y ≥ k) = σ(slope·θ − threshold).
        """
        at = np.concatenate([u[:, 1:2], u[:, 1:2] + np.cumsum(np.exp(u[:, 2:]), axis=1)], axis=1)
        if self.signed:
            return u[:, 0], at
        slope = np.exp(u[:, 0])
        return slope, slope[:, None] * at

    def constrain(self, u: Array, scale: float = 1.0, shift: float = 0.0) -> dict[str, Array]:
        slope, at = self._line(u)
        a = slope / scale
        intercepts = -(at + (slope * shift / scale)[:, None])
        with np.errstate(divide="ignore", invalid="ignore"):
            return {
                "a": a,
                **numbered("b", -intercepts / a[:, None]),
                **numbered("intercept", intercepts),
            }

    def unconstrain(self, table: Mapping[str, Array], size: int) -> Array:
        a = columns(table, ["a"])
        b = columns(table, [f"b{k}" for k in range(1, size)])
        at = a * b if self.signed else b
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.concatenate(
                [a if self.signed else np.log(a), at[:, :1], np.log(np.diff(at, axis=1))], axis=1
            )

    def slope_sign(self, u: Array) -> Array:
        return self._line(u)[0]

    def reflected(self, u: Array) -> Array:
        return np.concatenate([-u[:, :1], u[:, 1:]], axis=1)

    def log_likelihood(self, u: Array, theta: Array) -> Array:
        slope, at = self._line(u)
        out = np.empty((len(u), at.shape[1] + 1, theta.shape[-1]))
        graded_rows(slope, at, np.atleast_2d(theta), out)
        return out

    def log_likelihood_gradient(self, u: Array, theta: Array) -> Array:
        slope, at = self._line(u)
        above = (slope[:, None] * theta)[:, None, :] - at[:, :, None]  # (items, K, points)
        density = expit(above) * expit(-above)
        empty = np.zeros_like(density[:, :1])
        # P_k = F_k − F_{k+1}; each parameter moves the predictors of all F by `move`
        unit = np.ones(len(u)) if self.signed else slope
        steps = np.exp(u[:, 2:])
        by_slope = (
            np.broadcast_to(np.atleast_2d(theta)[:, None, :], above.shape) if self.signed else above
        )
        moves = [by_slope, np.broadcast_to(-unit[:, None, None], above.shape)]
        for k in range(steps.shape[1]):
            later = (np.arange(at.shape[1]) > k)[None, :, None]
            moves.append(np.broadcast_to(-(unit * steps[:, k])[:, None, None] * later, above.shape))
        log_p = self.log_likelihood(u, theta)
        out = []
        for move in moves:
            d = density * move
            out.append(
                (np.concatenate([empty, d], axis=1) - np.concatenate([d, empty], axis=1))
                / np.exp(log_p)
            )
        return np.stack(out, axis=1)

    def value_gradient_curvature(
        self, u: Array, theta: Array, counts: Array
    ) -> tuple[Array, Array, Array]:
        slope, at = self._line(u)
        value = np.zeros(len(u))
        gradient = np.zeros(u.shape)
        curvature = np.zeros((*u.shape, u.shape[1]))
        evaluate_graded(
            slope, at, np.exp(u[:, 2:]), self.signed, theta, counts, value, gradient, curvature
        )
        return value, gradient, curvature


@jit
def _graded_at(t: float, at: Array, log_gap: Array, up: Array, down: Array, log_p: Array) -> None:
    """At a predictor t without thresholds.

    Log P(Y ≥ k) and log P(Y < k) for each threshold, and the log chance of each category.

    σ(u) − σ(l) = σ(u) σ(−l) (1 − e^{l−u}): each factor keeps its digits in both tails, and the
    last, in `log_gap`, knows no ability.
    """
    last = at.size
    for k in range(last):
        above = t - at[k]
        rest = -np.log1p(np.exp(-abs(above)))
        up[k] = rest + min(above, 0.0)
        down[k] = rest - max(above, 0.0)
    log_p[0] = down[0]
    log_p[last] = up[last - 1]
    for k in range(1, last):
        log_p[k] = up[k - 1] + down[k] + log_gap[k]


@jit
def graded_rows(slope: Array, at: Array, theta: Array, out: Array) -> None:
    """Log chances of graded items at abilities (1 or items, points)."""
    count, last = at.shape
    up = np.empty(last)
    down = np.empty(last)
    log_p = np.empty(last + 1)
    log_gap = np.zeros(last)
    for i in range(count):
        own = i if theta.shape[0] > 1 else 0
        for k in range(1, last):
            log_gap[k] = np.log(-np.expm1(at[i, k - 1] - at[i, k]))
        for g in range(theta.shape[1]):
            _graded_at(slope[i] * theta[own, g], at[i], log_gap, up, down, log_p)
            for k in range(last + 1):
                out[i, k, g] = log_p[k]


@jit
def evaluate_graded(
    slope: Array,
    at: Array,
    steps: Array,
    signed: bool,
    theta: Array,
    counts: Array,
    value: Array,
    gradient: Array,
    curvature: Array,
) -> None:
    """Σ counts × log rows of graded items, gradients and expected curvatures, added to what is
    there, without an array on the way.
    """
    count, last = at.shape
    up = np.empty(last)
    down = np.empty(last)
    log_p = np.empty(last + 1)
    log_gap = np.zeros(last)
    rise = np.empty(last + 1)
    for i in range(count):
        unit = 1.0 if signed else slope[i]
        for k in range(1, last):
            log_gap[k] = np.log(-np.expm1(at[i, k - 1] - at[i, k]))
        for g in range(theta.size):
            n = 0.0
            for k in range(last + 1):
                n += counts[i, k, g]
            if n == 0.0:
                continue
            t = slope[i] * theta[g]
            _graded_at(t, at[i], log_gap, up, down, log_p)
            for k in range(last + 1):
                # the chance is that of its lower threshold less that of its upper
                # one: how steep each is, against the chance
                lower = np.exp(up[k - 1] + down[k - 1] - log_p[k]) if k > 0 else 0.0
                upper = np.exp(up[k] + down[k] - log_p[k]) if k < last else 0.0
                below = (theta[g] if signed else t - at[i, k - 1]) if k > 0 else 0.0
                above = (theta[g] if signed else t - at[i, k]) if k < last else 0.0
                rise[0] = lower * below - upper * above
                rise[1] = unit * (upper - lower)
                for j in range(last - 1):  # gap j lies below all thresholds from j + 1 on
                    rise[j + 2] = (
                        unit
                        * steps[i, j]
                        * ((upper if k > j else 0.0) - (lower if k > j + 1 else 0.0))
                    )
                c = counts[i, k, g]
                w = max(n, 0.0) * np.exp(log_p[k])
                value[i] += c * log_p[k]
                for p in range(last + 1):
                    gradient[i, p] += c * rise[p]
                    for q in range(p + 1):
                        curvature[i, p, q] += w * rise[p] * rise[q]
        for p in range(last + 1):
            for q in range(p):
                curvature[i, q, p] = curvature[i, p, q]


@dataclass(frozen=True)
class Softmax(ItemModel):
    """Categories with log odds that are straight lines in θ: P(k | θ) ∝ exp(α_k θ + δ_k)."""

    def lines(self, u: Array) -> tuple[Array, Array]:
        """α and δ, (items, categories) each."""
        raise NotImplementedError

    def line_jacobian(self, u: Array) -> tuple[Array, Array]:
        """Derivatives of α and δ by each parameter.

        (items, parameters, categories) each. Lines are smooth and cheap: by differences.
        """
        d_alpha = []
        d_delta = []
        for p in range(u.shape[1]):
            step = 1e-6
            ahead = u.copy()
            behind = u.copy()
            ahead[:, p] += step
            behind[:, p] -= step
            (a1, d1), (a0, d0) = self.lines(ahead), self.lines(behind)
            d_alpha.append((a1 - a0) / (2 * step))
            d_delta.append((d1 - d0) / (2 * step))
        return np.stack(d_alpha, axis=1), np.stack(d_delta, axis=1)

    def log_likelihood(self, u: Array, theta: Array) -> Array:
        alpha, delta = self.lines(u)
        z = alpha[:, :, None] * np.atleast_2d(theta)[:, None, :] + delta[:, :, None]
        return np.asarray(z - logsumexp(z, axis=1, keepdims=True))

    def log_likelihood_gradient(self, u: Array, theta: Array) -> Array:
        p = np.exp(self.log_likelihood(u, theta))
        d_alpha, d_delta = self.line_jacobian(u)
        dz = d_alpha[..., None] * np.atleast_2d(theta)[:, None, None, :] + d_delta[..., None]
        return np.asarray(dz - np.einsum("iprg,irg->ipg", dz, p)[:, :, None, :])

    def slope_sign(self, u: Array) -> Array:
        alpha = self.lines(u)[0]
        return np.asarray(
            (alpha * (np.arange(alpha.shape[1]) - (alpha.shape[1] - 1) / 2)).sum(axis=1)
            / alpha.shape[1]
        )


def _step_odds(share: Array) -> Array:
    """Log of each category's share over the one below."""
    smooth = share + 0.005
    return np.asarray(np.diff(np.log(smooth), axis=1))


@dataclass(frozen=True)
class GeneralPartialCredit(Softmax):
    """Muraki's generalised partial credit: P(k | θ) ∝ exp Σ_{v≤k} a(θ − b_v)."""

    name = "GPCM"

    def parameter_names(self, size: int) -> tuple[str, ...]:
        if self.signed:
            return ("slope", *(f"intercept{k}" for k in range(1, size)))
        return ("log_a", *(f"b{k}" for k in range(1, size)))

    def priors(self, size: int) -> tuple[NormalPrior, ...]:
        return (
            (SLOPE, *(INTERCEPT,) * (size - 1))
            if self.signed
            else (LOG_SLOPE, *(DIFFICULTY,) * (size - 1))
        )

    def initial(self, share: Array, slope: Array, reverse: Bools) -> Array:
        odds = np.clip(_step_odds(share), -4.0, 4.0)
        slope = slope / np.sqrt(share.shape[1] - 1)
        if self.signed:
            return np.concatenate([np.where(reverse, -slope, slope)[:, None], odds], axis=1)
        return np.concatenate(
            [np.log(slope)[:, None], np.clip(-odds / slope[:, None], -4, 4)], axis=1
        )

    def _steps(self, u: Array) -> tuple[Array, Array]:
        """Slope and the intercept of every step."""
        if self.signed:
            return u[:, 0], u[:, 1:]
        slope = np.exp(u[:, 0])
        return slope, -slope[:, None] * u[:, 1:]

    def lines(self, u: Array) -> tuple[Array, Array]:
        slope, steps = self._steps(u)
        return slope[:, None] * np.arange(steps.shape[1] + 1), _from_zero(steps)

    def constrain(self, u: Array, scale: float = 1.0, shift: float = 0.0) -> dict[str, Array]:
        slope, steps = self._steps(u)
        a = slope / scale
        intercepts = steps - (slope * shift / scale)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            return {
                "a": a,
                **numbered("b", -intercepts / a[:, None]),
                **numbered("intercept", intercepts),
            }

    def unconstrain(self, table: Mapping[str, Array], size: int) -> Array:
        a = columns(table, ["a"])
        b = columns(table, [f"b{k}" for k in range(1, size)])
        return np.concatenate([a, -a * b] if self.signed else [np.log(a), b], axis=1)

    def reflected(self, u: Array) -> Array:
        return np.concatenate([-u[:, :1], u[:, 1:]], axis=1)


def _from_zero(steps: Array) -> Array:
    """Running sums that begin with 0."""
    return np.concatenate([np.zeros_like(steps[:, :1]), np.cumsum(steps, axis=1)], axis=1)


@dataclass(frozen=True)
class PartialCredit(Softmax):
    """Masters' partial credit: slope 1 for every item, the abilities' variance is free instead."""

    name = "PCM"
    has_unit_slope = True

    def parameter_names(self, size: int) -> tuple[str, ...]:
        return tuple(f"b{k}" for k in range(1, size))

    def priors(self, size: int) -> tuple[NormalPrior, ...]:
        return (DIFFICULTY,) * (size - 1)

    def initial(self, share: Array, slope: Array, reverse: Bools) -> Array:
        return np.clip(-_step_odds(share), -4.0, 4.0)

    def lines(self, u: Array) -> tuple[Array, Array]:
        return np.tile(np.arange(u.shape[1] + 1.0), (len(u), 1)), _from_zero(-u)

    def constrain(self, u: Array, scale: float = 1.0, shift: float = 0.0) -> dict[str, Array]:
        a = np.full(len(u), 1 / scale)
        b = u * scale + shift
        return {"a": a, **numbered("b", b), **numbered("intercept", -b / scale)}

    def unconstrain(self, table: Mapping[str, Array], size: int) -> Array:
        return columns(table, [f"b{k}" for k in range(1, size)])


@dataclass(frozen=True)
class RatingScale(PartialCredit):
    """Andrich's rating scale.

    Partial credit whose steps are a difficulty of the item's own plus thresholds shared by all
    items.

    The shared thresholds sum to zero. Each item still carries its steps b_k = b + τ_k; the fit
    keeps them in this form.
    """

    name = "RSM"
    shared = True

    def constrain(self, u: Array, scale: float = 1.0, shift: float = 0.0) -> dict[str, Array]:
        whole = super().constrain(u, scale, shift)
        b = u * scale + shift
        return {
            "a": whole["a"],
            "b": b.mean(axis=1),
            **whole,
            **numbered("tau", b - b.mean(axis=1, keepdims=True)),
        }


@dataclass(frozen=True)
class Nominal(Softmax):
    """Bock's nominal response.

    P(k | θ) ∝ exp(α_k θ + δ_k), the lowest category at 0; order is not assumed.
    """

    name = "NRM"

    def parameter_names(self, size: int) -> tuple[str, ...]:
        return (*(f"alpha{k}" for k in range(1, size)), *(f"delta{k}" for k in range(1, size)))

    def priors(self, size: int) -> tuple[NormalPrior, ...]:
        return (SLOPE,) * (size - 1) + (INTERCEPT,) * (size - 1)

    def initial(self, share: Array, slope: Array, reverse: Bools) -> Array:
        signs = np.where(reverse, -1.0, 1.0) if self.signed else np.ones(len(share))
        rise = (slope * signs / np.sqrt(share.shape[1] - 1))[:, None] * np.arange(1, share.shape[1])
        return np.concatenate([rise, _from_zero(_step_odds(share))[:, 1:]], axis=1)

    def lines(self, u: Array) -> tuple[Array, Array]:
        half = u.shape[1] // 2
        zero = np.zeros((len(u), 1))
        return np.concatenate([zero, u[:, :half]], axis=1), np.concatenate(
            [zero, u[:, half:]], axis=1
        )

    def constrain(self, u: Array, scale: float = 1.0, shift: float = 0.0) -> dict[str, Array]:
        half = u.shape[1] // 2
        alpha = u[:, :half] / scale
        delta = u[:, half:] - u[:, :half] * shift / scale
        return {**numbered("alpha", alpha), **numbered("delta", delta)}

    def unconstrain(self, table: Mapping[str, Array], size: int) -> Array:
        steps = range(1, size)
        return columns(table, [*(f"alpha{k}" for k in steps), *(f"delta{k}" for k in steps)])

    def reflected(self, u: Array) -> Array:
        half = u.shape[1] // 2
        return np.concatenate([-u[:, :half], u[:, half:]], axis=1)
