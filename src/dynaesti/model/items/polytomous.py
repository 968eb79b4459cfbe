"""Items with several categories: graded, partial credit, rating scale and nominal models."""

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
    reflect_slope,
)


def log_between(above: Array, y: Array) -> Array:
    """Log probability of category y in a cumulative logit model.

    log(σ(u_y) − σ(u_{y+1})) for falling u_k = logit P(Y ≥ k), k = 1…K, u_0 = ∞, u_{K+1} = −∞.

    Parameters
    ----------
    above : array (..., K)
        The logits u_1 … u_K.
    y : array, broadcastable to (...)
        Categories 0 … K.

    Returns
    -------
    array (...)
        Log probabilities, with all digits in both tails.
    """
    ends = np.full((*above.shape[:-1], 1), np.inf)
    padded = np.concatenate([ends, above, -ends], axis=-1)
    chosen = np.broadcast_to(y, above.shape[:-1]).astype(np.int64)[..., None]
    upper = np.take_along_axis(padded, chosen, axis=-1)[..., 0]
    lower = np.take_along_axis(padded, chosen + 1, axis=-1)[..., 0]
    # σ(u) − σ(l) = σ(u) σ(−l) (1 − e^{l−u}): each factor keeps its digits in both tails
    return np.asarray(log_expit(upper) + log_expit(-lower) + np.log(-np.expm1(lower - upper)))


def _tail_frequencies(frequencies: Array) -> Array:
    """Frequencies of responses at or above each category but the lowest, kept distinct."""
    smooth = (frequencies + 0.01) / (frequencies + 0.01).sum(axis=1, keepdims=True)
    return np.asarray(smooth[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:])


@dataclass(frozen=True)
class Graded(ItemModel):
    """Samejima's graded response model: P(y ≥ k | θ) = σ(a (θ − b_k)), with b_1 < b_2 < ….

    Reported are the slope `a`, the thresholds `b1`, `b2`, … (the ability at which category k or
    above becomes likelier than below; larger is harder) and `intercept1`, … with intercept_k =
    −a · b_k. Unconstrained: log a, b_1 and the logs of the gaps between thresholds; when signed,
    the slope and the same for a · b_k.

    Parameters
    ----------
    signed : bool, default False
        Whether slopes may be negative.

    Examples
    --------
    >>> import numpy as np
    >>> from dynaesti.model import item_model
    >>> model = item_model("GRM")
    >>> table = {"a": [1.5], "b1": [-1.0], "b2": [1.0]}  # three categories
    >>> u = model.unconstrain({name: np.array(x) for name, x in table.items()}, size=3)
    >>> p = np.exp(model.log_likelihood(u, np.array([0.0])))
    >>> p[0, :, 0].round(3).tolist()
    [0.182, 0.635, 0.182]
    """

    name = "GRM"

    def parameter_names(self, size: int) -> tuple[str, ...]:
        first = ("slope", "threshold1") if self.signed else ("log_a", "b1")
        return (*first, *(f"log_gap{k}" for k in range(2, size)))

    def priors(self, size: int) -> tuple[NormalPrior, ...]:
        if self.signed:
            return (SLOPE, INTERCEPT, *(NormalPrior(0.0, 1.0),) * (size - 2))
        return (LOG_SLOPE, DIFFICULTY, *(LOG_GAP,) * (size - 2))

    def initial(self, frequencies: Array, slope: Array, reverse: Bools) -> Array:
        slope = slope * (1.0 if not self.signed else np.where(reverse, -1.0, 1.0))
        flat = np.sqrt(1 + slope**2 / 3)
        at = (
            -log_odds(_tail_frequencies(frequencies))
            * flat[:, None]
            / (1.0 if self.signed else slope[:, None])
        )
        gaps = np.log(np.maximum(np.diff(at, axis=1), 0.05))
        return np.concatenate(
            [(slope if self.signed else np.log(slope))[:, None], at[:, :1], gaps], axis=1
        )

    def _line(self, u: Array) -> tuple[Array, Array]:
        """Slope (n_items,) and thresholds (n_items, K): P(y ≥ k) = σ(slope·θ − threshold_k)."""
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
        return reflect_slope(u)

    def log_likelihood(self, u: Array, theta: Array) -> Array:
        slope, at = self._line(u)
        out = np.empty((len(u), at.shape[1] + 1, theta.shape[-1]))
        fill_graded(slope, at, np.atleast_2d(theta), out)
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
    """Log probabilities of a graded item at the predictor t = slope · θ.

    Fills `up` with log P(Y ≥ k) and `down` with log P(Y < k) for each threshold, and `log_p` with
    the log probability of each category. σ(u) − σ(l) = σ(u) σ(−l) (1 − e^{l−u}): each factor keeps
    its digits in both tails, and the last, in `log_gap`, does not depend on ability.
    """
    last = at.size
    for k in range(last):
        above = t - at[k]
        larger = -np.log1p(np.exp(-abs(above)))  # log of the larger of both probabilities
        up[k] = larger + min(above, 0.0)
        down[k] = larger - max(above, 0.0)
    log_p[0] = down[0]
    log_p[last] = up[last - 1]
    for k in range(1, last):
        log_p[k] = up[k - 1] + down[k] + log_gap[k]


@jit
def fill_graded(slope: Array, at: Array, theta: Array, out: Array) -> None:
    """Log probabilities of all categories of graded items.

    Parameters
    ----------
    slope : array (n_items,)
        Slopes.
    at : array (n_items, K)
        Thresholds on the logit scale: P(y ≥ k) = σ(slope·θ − at_k).
    theta : array (1 or n_items, n_points)
        Abilities.
    out : array (n_items, K + 1, n_points)
        Filled with the log probabilities.
    """
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
    """Add the expected log-likelihood of graded items, its gradient and expected curvature.

    No intermediate arrays.

    Parameters
    ----------
    slope : array (n_items,)
        Slopes.
    at : array (n_items, K)
        Thresholds on the logit scale: P(y ≥ k) = σ(slope·θ − at_k).
    steps : array (n_items, K − 1)
        Gaps between thresholds, as the parameters have them.
    signed : bool
        Whether the first parameter is the slope, else its logarithm.
    theta : array (n_points,)
        Abilities.
    counts : array (n_items, K + 1, n_points)
        Expected counts.
    value : array (n_items,)
        Where Σ counts × log P is added.
    gradient : array (n_items, K + 1)
        Where its derivatives are added.
    curvature : array (n_items, K + 1, K + 1)
        Where its expected negative Hessian is added.
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
                # P(y = k) is P(y ≥ k) less P(y ≥ k + 1): the derivative of each by its
                # predictor, relative to P(y = k)
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
    """Base class of models P(y = k | θ) ∝ exp(α_k θ + δ_k): log odds are straight lines in θ.

    Subclasses give the lines α, δ as functions of their parameters.
    """

    def lines(self, u: Array) -> tuple[Array, Array]:
        """Slopes α and intercepts δ of the categories, (n_items, size) each."""
        raise NotImplementedError

    def line_jacobian(self, u: Array) -> tuple[Array, Array]:
        """Derivatives of α and δ by parameters, (n_items, n_parameters, size) each.

        By central differences: lines are smooth and cheap.
        """
        d_alpha = []
        d_delta = []
        for p in range(u.shape[1]):
            step = 1e-6
            ahead = u.copy()
            behind = u.copy()
            ahead[:, p] += step
            behind[:, p] -= step
            a1, d1 = self.lines(ahead)
            a0, d0 = self.lines(behind)
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


def _step_odds(frequencies: Array) -> Array:
    """Log odds of each category against the one below, from frequencies."""
    smooth = frequencies + 0.005
    return np.asarray(np.diff(np.log(smooth), axis=1))


@dataclass(frozen=True)
class GeneralPartialCredit(Softmax):
    """Muraki's generalised partial credit model: P(y = k | θ) ∝ exp Σ_{v=1…k} a (θ − b_v).

    Reported are the slope `a`, the step difficulties `b1`, `b2`, … (the ability at which category k
    and the one below are equally likely; larger is harder, any order is allowed) and `intercept1`,
    … with intercept_k = −a · b_k. Unconstrained: (log a, b_1, …), or (a, intercept_1, …) when
    signed.

    Parameters
    ----------
    signed : bool, default False
        Whether slopes may be negative.

    Examples
    --------
    >>> import numpy as np
    >>> from dynaesti.model import item_model
    >>> model = item_model("GPCM")
    >>> one, low, high = np.array([1.0]), np.array([-1.0]), np.array([1.0])
    >>> u = model.unconstrain({"a": one, "b1": low, "b2": high}, size=3)  # three categories
    >>> p = np.exp(model.log_likelihood(u, np.array([0.0])))
    >>> p[0, :, 0].round(3).tolist()
    [0.212, 0.576, 0.212]
    """

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

    def initial(self, frequencies: Array, slope: Array, reverse: Bools) -> Array:
        odds = np.clip(_step_odds(frequencies), -4.0, 4.0)
        slope = slope / np.sqrt(frequencies.shape[1] - 1)
        if self.signed:
            return np.concatenate([np.where(reverse, -slope, slope)[:, None], odds], axis=1)
        return np.concatenate(
            [np.log(slope)[:, None], np.clip(-odds / slope[:, None], -4, 4)], axis=1
        )

    def _steps(self, u: Array) -> tuple[Array, Array]:
        """Slope (n_items,) and the intercept of every step (n_items, size − 1)."""
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
        return reflect_slope(u)


def _from_zero(steps: Array) -> Array:
    """Cumulative sums along the second axis, with a 0 in front."""
    return np.concatenate([np.zeros_like(steps[:, :1]), np.cumsum(steps, axis=1)], axis=1)


@dataclass(frozen=True)
class PartialCredit(Softmax):
    """Masters' partial credit model: P(y = k | θ) ∝ exp Σ_{v=1…k} (θ − b_v), with slope 1.

    The variance of abilities is free instead, so that on a reported scale of unit variance all
    items have the same slope `a`. Reported are `a`, the step difficulties `b1`, `b2`, … (larger is
    harder) and `intercept1`, … with intercept_k = −a · b_k. Unconstrained: b_1, b_2, ….

    Parameters
    ----------
    signed : bool, default False
        Without effect: the slope is 1.

    Examples
    --------
    >>> import numpy as np
    >>> from dynaesti.model import item_model
    >>> model = item_model("PCM")
    >>> p = np.exp(model.log_likelihood(np.array([[-1.0, 1.0]]), np.array([1.0])))
    >>> p[0, :, 0].round(3).tolist()
    [0.063, 0.468, 0.468]
    """

    name = "PCM"
    has_unit_slope = True

    def parameter_names(self, size: int) -> tuple[str, ...]:
        return tuple(f"b{k}" for k in range(1, size))

    def priors(self, size: int) -> tuple[NormalPrior, ...]:
        return (DIFFICULTY,) * (size - 1)

    def initial(self, frequencies: Array, slope: Array, reverse: Bools) -> Array:
        return np.clip(-_step_odds(frequencies), -4.0, 4.0)

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
    """Andrich's rating scale model: P(y = k | θ) ∝ exp Σ_{v=1…k} (θ − b − τ_v).

    A partial credit model with slope 1 in which step v of an item is its difficulty b plus a
    threshold τ_v that all items share; the thresholds sum to zero. Reported are the slope `a`, the
    difficulty `b` (larger is harder), the steps `b1`, … with b_k = b + τ_k, `intercept1`, … and
    `tau1`, …. Unconstrained: b_1, b_2, …, which the M-step keeps in the form b + τ_k.

    Parameters
    ----------
    signed : bool, default False
        Without effect: the slope is 1.

    Examples
    --------
    >>> import numpy as np
    >>> from dynaesti.model import item_model
    >>> item = item_model("RSM").constrain(np.array([[-0.5, 1.5]]))
    >>> {name: float(item[name][0]) for name in ("b", "tau1", "tau2")}
    {'b': 0.5, 'tau1': -1.0, 'tau2': 1.0}
    """

    name = "RSM"
    shares_thresholds = True

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
    """Bock's nominal response model: P(y = k | θ) ∝ exp(α_k θ + δ_k), with α_0 = δ_0 = 0.

    No order of the categories is assumed. Reported are the slopes `alpha1`, `alpha2`, … (positive:
    likelier than the lowest category at higher ability) and the intercepts `delta1`, `delta2`, …
    (larger: more frequent). Both are also the unconstrained parameters.

    Parameters
    ----------
    signed : bool, default False
        Whether starting values may have negative slopes; estimated slopes always may.

    Examples
    --------
    >>> import numpy as np
    >>> from dynaesti.model import item_model
    >>> model = item_model("NRM")
    >>> u = np.array([[1.0, -1.0, 0.0, 0.0]])  # alpha1, alpha2, delta1, delta2
    >>> p = np.exp(model.log_likelihood(u, np.array([0.0, 2.0])))
    >>> p[0].round(2).T.tolist()
    [[0.33, 0.33, 0.33], [0.12, 0.87, 0.02]]
    """

    name = "NRM"

    @property
    def has_signed_slopes(self) -> bool:
        return True

    def parameter_names(self, size: int) -> tuple[str, ...]:
        return (*(f"alpha{k}" for k in range(1, size)), *(f"delta{k}" for k in range(1, size)))

    def priors(self, size: int) -> tuple[NormalPrior, ...]:
        return (SLOPE,) * (size - 1) + (INTERCEPT,) * (size - 1)

    def initial(self, frequencies: Array, slope: Array, reverse: Bools) -> Array:
        signs = np.where(reverse, -1.0, 1.0) if self.signed else np.ones(len(frequencies))
        rise = (slope * signs / np.sqrt(frequencies.shape[1] - 1))[:, None] * np.arange(
            1, frequencies.shape[1]
        )
        return np.concatenate([rise, _from_zero(_step_odds(frequencies))[:, 1:]], axis=1)

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
