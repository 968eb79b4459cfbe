"""The interface of all item models, and helpers that several of them share.

An item model turns a few parameters into log-likelihoods over ability. The log-likelihood of a
response is a sum of *terms*, coefficient × row plus a constant. A response in category k has one
term, 1 × log P_k(θ). A count y has two, y × log λ(θ) and 1 × −λ(θ). So inference sees only rows and
coefficients, and the M-step sees only the expected sums of coefficients at each ability ("expected
counts"), whatever the family.

Items are optimised in unconstrained parameters (log slope, difficulty, logit of guessing, …), an
array u of shape (n_items, n_parameters). `ItemModel.constrain` gives the reported parameters.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from dynaesti.core import Array, Bools, Ints
from dynaesti.errors import InputError, ResponseError, option

STEP = 1e-5  # of central differences
MODEL_RANGE = 5.0  # abilities on either side of 0 at which users' models are judged
NEGLIGIBLE = -30.0  # log probability below which a response's likelihood does not count


@dataclass(frozen=True)
class NormalPrior:
    """Weak normal prior of one unconstrained item parameter.

    Thousands of items with few responses each would drag the unit of ability along: smaller slopes
    are likelier, so abilities would grow without end. There, centres and spreads are learned from
    the items themselves, and the weak prior has no weight on what depends on the unit.

    Parameters
    ----------
    mean : float
        Centre, on the unconstrained scale.
    sd : float
        Standard deviation, on the unconstrained scale.
    role : {"", "log slope", "log gap", "slope", "location"}
        How the parameter depends on the unit of ability: not at all (""), by its centre
        ("log slope", "log gap"), by its spread ("slope"), or by both ("location").
    """

    mean: float
    sd: float
    role: str = ""


LOG_SLOPE = NormalPrior(0.0, 0.5, "log slope")
SLOPE = NormalPrior(0.0, 1.5, "slope")
DIFFICULTY = NormalPrior(0.0, 2.0, "location")
INTERCEPT = NormalPrior(0.0, 3.0)
LOG_GAP = NormalPrior(-0.2, 1.0, "log gap")


@dataclass(frozen=True)
class ItemModel:
    """Base class of item models: the formula of one family of items.

    Users choose a model by its name ("2PL", "GRM", "poisson", …), or write their own with
    `CustomItemModel`. All arrays hold many items of one model at once. `size` is the number of an
    item's categories; models without categories ignore it.

    Parameters
    ----------
    signed : bool, default False
        Whether slopes may be negative, for items that run backwards. The first parameter is then
        the slope itself, and locations are kept as intercepts.

    Attributes
    ----------
    name : str
        Name by which the model is chosen, and under which it is saved.
    categorical : bool
        Whether responses are categories with probabilities that sum to 1.
    has_value_rows : bool
        Whether each distinct response value has a log-likelihood row of its own. Otherwise a
        response is a sum of terms, see `terms`.
    is_probability : bool
        Whether the likelihood of a response is a probability, not a density.
    binary : bool
        Whether the only responses are 0 and 1.
    shares_thresholds : bool
        Whether items have parameters in common.
    has_unit_slope : bool
        Whether every slope is 1, so that the variance of abilities is free instead.
    has_response_unit : bool
        Whether responses have a zero and a unit of their own, item by item.
    can_be_rescaled : bool
        Whether parameters can be expressed for another zero and unit of ability.
    needs_row_check : bool
        Whether the formula is a user's, so that its rows must be checked and its steepness
        measured.
    any_response : float
        A response that the model accepts, to stand in for a missing one.
    response_kind : str
        What `accepts` allows, in words.
    parameter_bound : float
        Absolute value at which an unconstrained parameter stops. Without priors a slope or
        difficulty may run away.
    max_newton_step : float
        Largest change of a parameter in one step of the M-step.
    floors : mapping of str to float
        Parameters that would run away downwards, and where they stop.

    Examples
    --------
    >>> import numpy as np
    >>> from dynaesti.model import item_model
    >>> rasch = item_model("1PL")
    >>> rasch.parameter_names(2)
    ('b',)
    >>> u = np.array([[0.5]])  # one item of difficulty 0.5
    >>> p = np.exp(rasch.log_likelihood(u, np.array([0.5])))  # at ability 0.5
    >>> p[0, :, 0].round(2).tolist()
    [0.5, 0.5]
    """

    signed: bool = field(default=False, kw_only=True)

    name: ClassVar[str]
    categorical: ClassVar[bool] = True
    has_value_rows: ClassVar[bool] = True
    is_probability: ClassVar[bool] = True
    binary: ClassVar[bool] = False
    shares_thresholds: ClassVar[bool] = False
    has_unit_slope: ClassVar[bool] = False
    has_response_unit: ClassVar[bool] = False
    can_be_rescaled: ClassVar[bool] = True
    needs_row_check: ClassVar[bool] = False
    any_response: ClassVar[float] = 0.0
    response_kind: ClassVar[str] = "numbers"
    parameter_bound: ClassVar[float] = 30.0
    max_newton_step: ClassVar[float] = 1.5
    floors: ClassVar[Mapping[str, float]] = {}

    @property
    def label(self) -> str:
        """Name shown in tables and reports."""
        return self.name

    @property
    def has_signed_slopes(self) -> bool:
        """Whether items may run backwards, so that the data do not fix the scale's direction."""
        return self.signed

    @property
    def is_reflectable(self) -> bool:
        """Whether items can be expressed on the reflected scale θ → −θ."""
        return type(self).reflected is not ItemModel.reflected

    # --- parameters
    # -----------------------------------------------------------------------------------

    def parameter_names(self, size: int) -> tuple[str, ...]:
        """Names of the unconstrained parameters of an item with `size` categories."""
        raise NotImplementedError

    def priors(self, size: int) -> tuple[NormalPrior, ...]:
        """Weak prior of each unconstrained parameter, in the order of `parameter_names`."""
        raise NotImplementedError

    def initial(self, frequencies: Array, slope: Array, reverse: Bools) -> Array:
        """Unconstrained parameters from which estimation starts.

        Parameters
        ----------
        frequencies : array (n_items, size)
            Relative frequency of each category; (n_items, 2) with the mean and standard deviation
            of the responses for models without categories.
        slope : array (n_items,)
            Rough positive slopes.
        reverse : bool array (n_items,)
            Items that run backwards. Used by signed models only.

        Returns
        -------
        array (n_items, n_parameters)
            Unconstrained parameters.
        """
        raise NotImplementedError

    def constrain(self, u: Array, scale: float = 1.0, shift: float = 0.0) -> dict[str, Array]:
        """Reported parameters, with abilities expressed as scale · θ + shift.

        Parameters
        ----------
        u : array (n_items, n_parameters)
            Unconstrained parameters.
        scale, shift : float
            The reported scale of ability.

        Returns
        -------
        dict of str to array (n_items,)
            Reported parameters by name.
        """
        raise NotImplementedError

    def unconstrain(self, table: Mapping[str, Array], size: int) -> Array:
        """Unconstrained parameters from reported ones: the inverse of `constrain`.

        Parameters
        ----------
        table : mapping of str to array (n_items,)
            Reported parameters by name. Missing ones become NaN.
        size : int
            Number of categories.

        Returns
        -------
        array (n_items, n_parameters)
            Unconstrained parameters.
        """
        raise NotImplementedError

    def slope_sign(self, u: Array) -> Array:
        """Signed steepness of each item (n_items,), which gives the scale its direction."""
        raise NotImplementedError

    def reflected(self, u: Array) -> Array:
        """Unconstrained parameters of the same items on the scale θ → −θ (signed models only)."""
        raise NotImplementedError

    def to_response_unit(self, table: Mapping[str, Array], values: Array) -> dict[str, Array]:
        """Reported parameters in the unit of the responses, where the model keeps another unit.

        `values` are those of each item, see `ItemBlock.values`.
        """
        return dict(table)

    def from_response_unit(self, table: Mapping[str, Array], values: Array) -> dict[str, Array]:
        """Reported parameters in the model's own unit: the inverse of `to_response_unit`."""
        return dict(table)

    # --- likelihood
    # -----------------------------------------------------------------------------------

    def log_likelihood(self, u: Array, theta: Array) -> Array:
        """Log-likelihood rows of each item.

        Parameters
        ----------
        u : array (n_items, n_parameters)
            Unconstrained parameters.
        theta : array (n_points,) or (n_items, n_points)
            Abilities, the same for all items or each item's own.

        Returns
        -------
        array (n_items, n_rows, n_points)
            One row for each category or response value (`has_value_rows`), else the rows that
            `terms` has coefficients for.
        """
        raise NotImplementedError

    def log_likelihood_gradient(self, u: Array, theta: Array) -> Array:
        """Derivatives of the rows by parameters: (n_items, n_parameters, n_rows, n_points)."""
        return central_gradient(self, u, theta)

    def row_count(self, size: int) -> int:
        """Number of log-likelihood rows of an item with `size` categories."""
        return size

    @property
    def term_count(self) -> int:
        """Number of rows that a response has coefficients for, where it has any."""
        return self.row_count(0)

    def term_rows(self, amount: Array, size: int) -> Ints:
        """Rows of the item that the coefficients of `terms` belong to, (n_responses, n_terms)."""
        return np.broadcast_to(np.arange(self.row_count(size)), (amount.size, self.row_count(size)))

    def terms(self, amount: Array, values: Array) -> tuple[Array, Array]:
        """Coefficients of the rows for responses that are amounts.

        log f(y | θ) = Σ coefficient × row(θ) + constant. Models with a row for each response value
        (`has_value_rows`) have no terms.

        Parameters
        ----------
        amount : array (n_responses,)
            Responses.
        values : array (n_responses, 0) or (n_responses, 2)
            Zero and unit of each response's item, see `ItemBlock.values`.

        Returns
        -------
        coefficients : array (n_responses, n_terms)
            One coefficient for each of `term_rows`.
        constants : array (n_responses,)
            What does not depend on ability.
        """
        raise NotImplementedError

    def log_likelihood_of(self, u: Array, theta: Array, code: Array, values: Array) -> Array:
        """Log-likelihood of one response to each item.

        Parameters
        ----------
        u : array (n_responses, n_parameters)
            Unconstrained parameters of each response's item.
        theta : array (n_points,) or (n_responses, n_points)
            Abilities.
        code : array (n_responses,)
            Category of each response, or its amount.
        values : array (n_responses, 0) or (n_responses, 2)
            As in `terms`.

        Returns
        -------
        array (n_responses, n_points)
        """
        rows = self.log_likelihood(u, theta)
        if self.has_value_rows:
            return np.asarray(rows[np.arange(code.size), code.astype(np.int64)])
        terms, constant = self.terms(code, values)
        return np.asarray(np.einsum("nr,nrg->ng", terms, rows) + constant[:, None])

    def expected(self, u: Array, theta: Array, values: Array) -> Array:
        """Mean response (n_items, n_points).

        `values` are the responses that the categories stand for, (n_items, size).
        """
        return np.asarray(np.einsum("ikg,ik->ig", np.exp(self.log_likelihood(u, theta)), values))

    def variance(self, u: Array, theta: Array, values: Array) -> Array:
        """Variance of the response (n_items, n_points); `values` as in `expected`."""
        p = np.exp(self.log_likelihood(u, theta))
        return np.asarray(
            np.einsum("ikg,ik->ig", p, values**2) - self.expected(u, theta, values) ** 2
        )

    def draw(self, u: Array, theta: Array, rng: np.random.Generator) -> Array:
        """One random response for each item and its ability.

        Parameters
        ----------
        u : array (n_responses, n_parameters)
            Unconstrained parameters of each response's item.
        theta : array (n_responses,)
            Ability at each response.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array (n_responses,)
            Responses; categories count from 0.
        """
        p = np.exp(self.log_likelihood(u, theta[:, None]))[:, :, 0]
        return np.asarray(
            (rng.uniform(size=(theta.size, 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1),
            dtype=np.float64,
        )

    # --- responses
    # -----------------------------------------------------------------------------------

    def accepts(self, resp: Array) -> Bools:
        """Which responses (n_responses,) the likelihood is defined for; categories: all."""
        return np.ones(resp.size, dtype=bool)

    def check_responses(self, resp: Array, label: object) -> None:
        """Refuse responses that the model cannot have given.

        Parameters
        ----------
        resp : array (n_responses,)
            Responses to one item.
        label : object
            The item's name, for the message.

        Raises
        ------
        ResponseError
            Where `accepts` is False for a response.

        Examples
        --------
        >>> import numpy as np
        >>> from dynaesti.model import item_model
        >>> item_model("poisson").check_responses(np.array([1.0, 2.5]), "goals")
        Traceback (most recent call last):
            ...
        dynaesti.errors.ResponseError: resp: 1 of 2 answers to item 'goals' are not whole ...
        """
        bad = ~self.accepts(resp)
        if bad.any():
            raise ResponseError(
                f"resp: {int(bad.sum())} of {resp.size} answers to item {label!r} are not "
                f"{self.response_kind} (first: {resp[int(bad.argmax())]:g}), which the "
                f"{self.name} model needs; correct them, or choose another model"
            )

    def with_values(self, values: Array) -> "ItemModel":
        """The model with a row for each distinct response value of the data.

        Only models that are not categorical and have value rows depend on them; others return
        themselves.
        """
        return self

    def signature(self) -> str:
        """Text that says all of the model, in every process alike: for fingerprints of options."""
        return repr(self)

    def check_rows(self, rows: Array, theta: Array) -> None:
        """Refuse rows (n_items, n_rows, n_points) on an even grid that cannot be computed with.

        Built-in formulas are smooth and positive: nothing is refused.
        """

    def steepness(self, u: Array) -> Array:
        """Fastest change of each item's log-likelihood rows with ability, (n_items,).

        Measured between −5 and 5, where rows are not negligible.
        """
        theta = np.linspace(-MODEL_RANGE, MODEL_RANGE, 201)
        rows = self.log_likelihood(u, theta)
        visible = np.maximum(rows[:, :, 1:], rows[:, :, :-1]) > NEGLIGIBLE
        change = np.abs(np.diff(rows, axis=2)) * visible
        return np.asarray(change.max(axis=(1, 2), initial=0.0) / (theta[1] - theta[0]))

    # --- M-step
    # -----------------------------------------------------------------------------------

    def curvature(
        self, u: Array, theta: Array, counts: Array, rows: Array, gradient: Array
    ) -> Array:
        """Negative Hessian of Σ counts × rows, or its expectation.

        For categories the expected one, which is never indefinite: the sum over abilities of the
        number of responses there × Fisher information.

        Parameters
        ----------
        u : array (n_items, n_parameters)
            Unconstrained parameters.
        theta : array (n_points,)
            Abilities.
        counts : array (n_items, n_rows, n_points)
            Expected counts.
        rows, gradient : array
            `log_likelihood` and `log_likelihood_gradient` at u.

        Returns
        -------
        array (n_items, n_parameters, n_parameters)
            Curvature of each item.
        """
        weight = np.exp(rows) * np.maximum(counts.sum(axis=1, keepdims=True), 0.0)
        return np.asarray(
            np.einsum("iprg,iqrg->ipq", gradient * weight[:, None], gradient, optimize=True)
        )

    def value_gradient_curvature(
        self, u: Array, theta: Array, counts: Array
    ) -> tuple[Array, Array, Array]:
        """Expected log-likelihood of each item with its derivatives, for the M-step.

        Parameters
        ----------
        u : array (n_items, n_parameters)
            Unconstrained parameters.
        theta : array (n_points,)
            Abilities.
        counts : array (n_items, n_rows, n_points)
            Expected counts.

        Returns
        -------
        value : array (n_items,)
            Σ counts × rows.
        gradient : array (n_items, n_parameters)
            Its derivatives by u.
        curvature : array (n_items, n_parameters, n_parameters)
            Its negative Hessian, or the expectation of it.
        """
        rows = self.log_likelihood(u, theta)
        gradient = self.log_likelihood_gradient(u, theta)
        return (
            np.asarray(np.einsum("irg,irg->i", counts, rows)),
            np.asarray(np.einsum("iprg,irg->ip", gradient, counts)),
            self.curvature(u, theta, counts, rows, gradient),
        )


class ContinuousItemModel(ItemModel):
    """Base class of models of amounts: a few log-likelihood rows for any number of values."""

    categorical = False
    has_value_rows = False
    is_probability = False

    def cumulative(self, resp: Array, mean: Array, variance: Array) -> tuple[Array, Array] | None:
        """Probability of less than a response, and of that or less, given its mean and variance.

        None where the model has no distribution function.
        """
        return None

    def draw(self, u: Array, theta: Array, rng: np.random.Generator) -> Array:
        raise InputError(
            f"model: responses cannot be drawn from the {self.label} model; name a built-in model"
        )

    def curvature(
        self, u: Array, theta: Array, counts: Array, rows: Array, gradient: Array
    ) -> Array:
        """Negative Hessian of Σ counts × rows, by central differences of the gradient."""
        width = u.shape[1]
        out = np.empty((len(u), width, width))
        for p in range(width):
            ahead = u.copy()
            behind = u.copy()
            ahead[:, p] += STEP
            behind[:, p] -= STEP
            gradients = [
                np.einsum("iprg,irg->ip", self.log_likelihood_gradient(v, theta), counts)
                for v in (ahead, behind)
            ]
            out[:, p] = (gradients[1] - gradients[0]) / (2 * STEP)
        return 0.5 * (out + out.transpose(0, 2, 1))


def central_gradient(model: ItemModel, u: Array, theta: Array) -> Array:
    """Derivatives of a model's rows by central differences.

    (n_items, n_parameters, n_rows, n_points).
    """
    out = []
    for p in range(u.shape[1]):
        ahead = u.copy()
        behind = u.copy()
        ahead[:, p] += STEP
        behind[:, p] -= STEP
        out.append(
            (model.log_likelihood(ahead, theta) - model.log_likelihood(behind, theta)) / (2 * STEP)
        )
    return np.stack(out, axis=1)


def slope_intercept(u: Array, signed: bool) -> tuple[Array, Array]:
    """Slope and intercept of the predictor slope · θ + intercept, (n_items,) each.

    The first two parameters are (slope, intercept) if signed, else (log slope, difficulty).
    """
    if signed:
        return u[:, 0], u[:, 1]
    slope = np.exp(u[:, 0])
    return slope, -slope * u[:, 1]


def slope_intercept_gradient(u: Array, theta: Array, signed: bool) -> tuple[Array, Array]:
    """Derivatives of slope·θ + intercept by the two parameters, each (n_items, n_points)."""
    if signed:
        return np.broadcast_to(theta, (len(u), theta.shape[-1])), np.ones((len(u), theta.shape[-1]))
    slope = np.exp(u[:, :1])
    return slope * (theta - u[:, 1:2]), np.broadcast_to(-slope, (len(u), theta.shape[-1]))


def reflect_slope(u: Array) -> Array:
    """Parameters with the sign of the first one, a signed slope, changed."""
    return np.concatenate([-u[:, :1], u[:, 1:]], axis=1)


def constrain_line(u: Array, signed: bool, scale: float, shift: float) -> dict[str, Array]:
    """Reported parameters a, b and intercept of the line a(θ − b) = a·θ + intercept."""
    slope, intercept = slope_intercept(u, signed)
    return reported_line(slope, intercept, scale, shift)


def reported_line(slope: Array, intercept: Array, scale: float, shift: float) -> dict[str, Array]:
    """Reported parameters of slope · θ + intercept, with abilities expressed as scale·θ + shift."""
    a = slope / scale
    intercept = intercept - slope * shift / scale
    with np.errstate(divide="ignore", invalid="ignore"):
        return {"a": a, "b": -intercept / a, "intercept": intercept}


def unconstrain_line(table: Mapping[str, Array], signed: bool) -> list[Array]:
    """The first two parameters from a and b or the intercept; NaN where they are not given."""
    some = next(iter(table.values()))
    a = np.asarray(table.get("a", np.full(some.shape, np.nan)))
    intercept = np.asarray(table.get("intercept", np.full(some.shape, np.nan)))
    b = np.asarray(table.get("b", -intercept / a))
    if not signed and np.any(a <= 0):
        raise InputError(
            f"item parameters: {int(np.sum(a <= 0))} slopes a are not positive; use "
            f"{option('direction', 'free')} for items that run backwards"
        )
    return [a, np.where(np.isnan(intercept), -a * b, intercept)] if signed else [np.log(a), b]


def numbered(prefix: str, values: Array) -> dict[str, Array]:
    """Columns b1, b2, … of a vector parameter (n_items, n)."""
    return {f"{prefix}{k + 1}": values[:, k] for k in range(values.shape[1])}


def columns(table: Mapping[str, Array], names: Sequence[str]) -> Array:
    """Several named columns side by side, (n_items, n_names), NaN where missing."""
    some = next(iter(table.values()))
    return np.stack(
        [
            np.asarray(table.get(name, np.full(some.shape, np.nan)), dtype=np.float64)
            for name in names
        ],
        axis=1,
    )


def log_odds(frequency: Array) -> Array:
    """Log p/(1 − p), with p kept between 0.01 and 0.99."""
    p = np.clip(frequency, 0.01, 0.99)
    return np.asarray(np.log(p / (1 - p)))
