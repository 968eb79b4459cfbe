"""The user's own item model, from one function."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit

from dynaesti.core import Array, Bools
from dynaesti.errors import InputError
from dynaesti.model.items.base import (
    MODEL_RANGE,
    NEGLIGIBLE,
    ContinuousItemModel,
    NormalPrior,
    columns,
)

MOST_VALUES = 400  # distinct responses that get a row each
# at most so many responses, all whole numbers, are taken for categories; what their probabilities
# may add up to
FEW_VALUES = 12
MAX_TOTAL = 1.02
IMPOSSIBLE = -700.0  # log probability that stands for −inf
# log units between two points of the grid that make a jump, if the changes on both sides of it are
# together less than this part of it
JUMP = 0.05
SMOOTH = 0.2


@dataclass(frozen=True)
class CustomItemModel(ContinuousItemModel):
    """An item model from a function that returns log P(y | θ).

    All items of the model share the function; each has its own parameters, which are learned
    between their bounds under weak normal priors around their starting values.

    Parameters
    ----------
    log_prob : callable
        ``log_prob(theta, resp, params)`` with `theta` an array (n_points,) of abilities, `resp` one
        response and `params` a tuple of numbers in the order of `params` below. Returns log P(resp
        | θ) as an array (n_points,), or a log density for continuous responses. It must be smooth
        in θ; where there are more than 400 different responses it is a density, read off a grid
        of responses, and must be smooth in these too.
    params : mapping of str to (start, lower, upper)
        Starting value and bounds of each parameter, with lower < start < upper. Bounds may be
        infinite.
    label : str, default "own"
        Name of the model in tables, messages and saved files.
    values : tuple of float, default ()
        Distinct responses. The fit fills them in; users leave them.
    signed : bool, default False
        Without effect: the function decides.

    Raises
    ------
    InputError
        If `log_prob` is not callable, or a parameter lacks a start between its bounds. While
        fitting, if the function fails, returns NaN or +inf, jumps, or gives probabilities that add
        up to more than 1.

    Examples
    --------
    A Rasch model whose curve is the normal distribution function:

    >>> import numpy as np
    >>> from scipy.special import log_ndtr
    >>> import dynaesti as dy
    >>> def log_prob(theta, resp, params):
    ...     (b,) = params
    ...     return log_ndtr((theta - b) * (1 if resp == 1 else -1))
    >>> model = dy.CustomItemModel(log_prob, {"b": (0.0, -6.0, 6.0)}, label="probit")
    >>> model.label, model.parameter_names(2)
    ('probit', ('b',))
    """

    log_prob: Callable[[Array, float, tuple[float, ...]], Any]
    params: Mapping[str, tuple[float, float, float]]
    label: str = "own"
    values: tuple[float, ...] = ()

    name = "own"
    has_value_rows = True
    can_be_rescaled = False  # of a formula that is not ours nothing is known but what it returns
    needs_row_check = True

    def __post_init__(self) -> None:
        if not callable(self.log_prob) or not isinstance(self.params, Mapping) or not self.params:
            raise InputError(
                "item model: give log_prob(theta, resp, params) and params={name: (start, lower, "
                "upper), …}"
            )
        for name, spec in self.params.items():
            numbers = (
                isinstance(spec, Sequence)
                and len(spec) == 3
                and all(isinstance(v, int | float) for v in spec)
            )
            if not numbers or not spec[1] < spec[0] < spec[2]:
                raise InputError(
                    f"item model: parameter {name!r} needs (start, lower, upper) with lower < "
                    f"start < upper, got {spec!r}"
                )

    def __hash__(self) -> int:
        return hash((self.label, id(self.log_prob), self.values, self.signed))

    def parameter_names(self, size: int) -> tuple[str, ...]:
        return tuple(self.params)

    def priors(self, size: int) -> tuple[NormalPrior, ...]:
        return tuple(
            NormalPrior(float(self._to_unbounded(np.array([s]), lo, hi)[0]), 2.0)
            for s, lo, hi in self.params.values()
        )

    @staticmethod
    def _to_unbounded(value: Array, lo: float, hi: float) -> Array:
        """Unconstrained values from values between bounds: a logit or a logarithm."""
        if np.isfinite(lo) and np.isfinite(hi):
            return np.asarray(np.log((value - lo) / (hi - value)))
        if np.isfinite(lo):
            return np.log(value - lo)
        return -np.log(hi - value) if np.isfinite(hi) else value

    @staticmethod
    def _to_bounded(u: Array, lo: float, hi: float) -> Array:
        """Values between bounds from unconstrained ones: the inverse of `_to_unbounded`."""
        if np.isfinite(lo) and np.isfinite(hi):
            return np.asarray(lo + (hi - lo) * expit(u))
        if np.isfinite(lo):
            return lo + np.exp(u)
        return hi - np.exp(-u) if np.isfinite(hi) else u

    def initial(self, frequencies: Array, slope: Array, reverse: Bools) -> Array:
        return np.tile([prior.mean for prior in self.priors(0)], (len(frequencies), 1))

    def constrain(self, u: Array, scale: float = 1.0, shift: float = 0.0) -> dict[str, Array]:
        """Parameters as the user's function takes them.

        They stay on the fit's own scale of ability, whatever `scale` and `shift`: nothing is known
        of how the formula depends on it.
        """
        return {
            name: self._to_bounded(u[:, k], lo, hi)
            for k, (name, (_, lo, hi)) in enumerate(self.params.items())
        }

    def unconstrain(self, table: Mapping[str, Array], size: int) -> Array:
        given = columns(table, list(self.params))
        return np.stack(
            [
                self._to_unbounded(given[:, k], lo, hi)
                for k, (_, lo, hi) in enumerate(self.params.values())
            ],
            axis=1,
        )

    def slope_sign(self, u: Array) -> Array:
        """Mean slope from −1 to 1 of the log odds of the highest against the lowest response."""
        rows = self.log_likelihood(u, np.array([-1.0, 1.0]))
        return np.asarray(
            0.5 * ((rows[:, -1, 1] - rows[:, 0, 1]) - (rows[:, -1, 0] - rows[:, 0, 0]))
        )

    def row_count(self, size: int) -> int:
        return len(self.values)

    def signature(self) -> str:
        params = sorted(self.params.items())
        return f"own model {self.label!r} {params} {_function_text(self.log_prob)}"

    def with_values(self, values: Array) -> "CustomItemModel":
        return replace(self, values=tuple(values.tolist()))

    def log_likelihood(self, u: Array, theta: Array) -> Array:
        natural = np.stack(list(self.constrain(u).values()), axis=1)
        points = np.broadcast_to(theta, (len(u), theta.shape[-1]))
        out = np.empty((len(u), len(self.values), theta.shape[-1]))
        for i, item in enumerate(natural):
            for k, value in enumerate(self.values):
                out[i, k] = self._call(points[i], value, tuple(item.tolist()))
        return out

    def log_likelihood_of(self, u: Array, theta: Array, code: Array, values: Array) -> Array:
        """Log-likelihood of one response to each item, computed for that response alone."""
        natural = np.stack(list(self.constrain(u).values()), axis=1)
        points = np.broadcast_to(theta, (len(u), theta.shape[-1]))
        rows = [
            self._call(at, self.values[int(k)], tuple(item.tolist()))
            for at, k, item in zip(points, code, natural, strict=True)
        ]
        return np.array(rows).reshape(len(u), theta.shape[-1])

    def draw(self, u: Array, theta: Array, rng: np.random.Generator) -> Array:
        """One random response for each item, of the values of the data."""
        p = np.exp(self.log_likelihood(u, theta[:, None]))[:, :, 0]
        total = p.cumsum(axis=1)
        uniform = rng.uniform(size=(theta.size, 1)) * total[:, -1:]
        return np.asarray(np.array(self.values)[(uniform > total[:, :-1]).sum(axis=1)])

    def _call(self, theta: Array, value: float, item: tuple[float, ...]) -> Array:
        """The user's function at abilities (n_points,), with its result checked."""
        try:
            found = np.asarray(self.log_prob(theta, value, item), dtype=np.float64)
        except Exception as error:  # whatever the user's function raised
            raise InputError(
                f"item model {self.label!r}: log_prob raised {type(error).__name__}: {error} "
                f"(resp {value:g}, params {item})"
            ) from error
        if found.shape != theta.shape or np.isnan(found).any() or (found == np.inf).any():
            raise InputError(
                f"item model {self.label!r}: log_prob must return one number below infinity for "
                f"each ability (resp {value:g}, params {item})"
            )
        # an impossible response stays a row that can be interpolated
        return np.maximum(found, IMPOSSIBLE)

    def check_rows(self, rows: Array, theta: Array) -> None:
        """Refuse rows (n_items, n_values, n_points) on an even grid that cannot be computed with.

        Refused are probabilities that add up to more than 1, that are 0 everywhere, that drop to 0
        at once, or that jump. A probability that decreases gradually until it rounds to 0, as
        log(1 − p) does, is accepted.
        """
        where = np.abs(theta) <= MODEL_RANGE
        near = rows[:, :, where]
        at = theta[where]
        whole = len(self.values) <= FEW_VALUES and all(
            float(value).is_integer() for value in self.values
        )
        if whole and (np.exp(near[:, :, np.abs(at) <= 2.0]).sum(axis=1) > MAX_TOTAL).all():
            raise InputError(
                f"item model {self.label!r}: the chances of its {len(self.values)} responses add "
                "up to more than 1 at every ability; log_prob must return the logarithm of a "
                "probability"
            )
        for k, value in enumerate(self.values):
            self._check_smooth(near[:, k], at, value)

    def _check_smooth(self, rows: Array, theta: Array, value: float) -> None:
        """Refuse the rows (n_items, n_points) of one response if they jump or are impossible."""
        impossible = rows <= IMPOSSIBLE
        if impossible.all(axis=1).any():
            raise InputError(
                f"item model {self.label!r}: the response {value:g} is impossible (log_prob is "
                "-inf) at every ability; give it a chance, or leave such answers out"
            )
        visible = np.maximum(rows[:, 1:], rows[:, :-1]) > NEGLIGIBLE
        edge = (impossible[:, 1:] != impossible[:, :-1]) & visible
        change = np.abs(np.diff(rows, axis=1))
        around = np.pad(change, ((0, 0), (1, 1)), mode="edge")
        jump = (change > JUMP) & (around[:, :-2] + around[:, 2:] < SMOOTH * change) & visible
        odd = np.argwhere(edge | jump)
        if odd.size:
            what = "drops to -inf" if edge[tuple(odd[0])] else "jumps"
            raise InputError(
                f"item model {self.label!r}: log_prob {what} at ability {theta[odd[0][1]]:.3g} "
                f"(resp {value:g}); curves are learned from smooth models, so let chances change "
                "gradually, and add 1e-6 or so to those of 0"
            )

    def expected(self, u: Array, theta: Array, values: Array) -> Array:
        """Mean response (n_items, n_points), over the values of the data."""
        p = np.exp(self.log_likelihood(u, theta))
        return np.asarray(np.einsum("irg,r->ig", p, np.array(self.values)) / p.sum(axis=1))

    def variance(self, u: Array, theta: Array, values: Array) -> Array:
        """Variance of the response (n_items, n_points), over the values of the data."""
        p = np.exp(self.log_likelihood(u, theta))
        return np.asarray(
            np.einsum("irg,r->ig", p, np.array(self.values) ** 2) / p.sum(axis=1)
            - self.expected(u, theta, values) ** 2
        )


def _function_text(function: Any) -> str:
    """A function by what it does: its code, and what it holds on to."""
    code = getattr(function, "__code__", None)
    if code is None:
        kind = type(function)
        fields = vars(function) if hasattr(function, "__dict__") else ""
        return f"{kind.__module__}.{kind.__qualname__} {fields}"
    held = [cell.cell_contents for cell in function.__closure__ or ()]
    parts = (
        code.co_code.hex(),
        [c for c in code.co_consts if not hasattr(c, "co_code")],
        code.co_names,
        function.__defaults__,
        [_function_text(part) if callable(part) else repr(part) for part in held],
        [c.co_code.hex() for c in code.co_consts if hasattr(c, "co_code")],
    )
    return f"{function.__qualname__} {parts}"
