"""Covariance kernels over time.

A kernel owns its hyper-parameters: numbers, or words that say how to learn them.

A simple kernel has covariance weight · amplitude² · correlation(s, t). A sum has a tuple of simple
kernels, its summands; scaling a kernel scales their weights, so `0.5 * Level() + 0.5 * RBF()` has
total variance 1. The nugget is variance (relative to the summand's) of each instant alone: it is
added to what an emission sees of the curve and is no part of the curve.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from dynaesti.core import Array, Header, is_number, positive_number, require
from dynaesti.errors import InputError

Method: TypeAlias = Literal["learn", "evidence", "loo", "cv"]
Bandwidth: TypeAlias = float | Method
# None: 1 where unit variance is a fair prior, else learned
Amplitude: TypeAlias = float | Literal["learn"] | None
METHODS: tuple[Method, ...] = ("learn", "evidence", "loo", "cv")
# a nugget for rounding's sake only: sharper emissions than 1e-5 of the amplitude would cost all
# digits of their cavities
ROUNDING_NUGGET = 1e-10
SQRT3 = float(np.sqrt(3.0))
SQRT5 = float(np.sqrt(5.0))


class Kernel(ABC):
    """Base class of covariance kernels: they can be added, scaled and evaluated.

    ``k1 + k2`` is the kernel of a sum of independent curves; ``0.5 * k`` has half the variance.

    Parameters
    ----------
    None
        The base class takes none. Subclasses define their own, such as `bandwidth` and `amplitude`,
        and the property `summands`.

    Examples
    --------
    A constant of variance 0.5 plus a smooth curve of variance 0.5:

    >>> import dynaesti as dy
    >>> kernel = 0.5 * dy.Level() + 0.5 * dy.RBF(bandwidth=2.0)
    >>> float(kernel.cov(0.0, 0.0))
    1.0
    >>> round(float(kernel.cov(0.0, 2.0)), 3)
    0.803
    """

    @property
    @abstractmethod
    def summands(self) -> tuple[BaseKernel, ...]:
        """The simple kernels whose sum this kernel is."""

    def __add__(self, other: Kernel) -> Kernel:
        if not isinstance(other, Kernel):
            return NotImplemented
        return Sum(self.summands + other.summands)

    def __mul__(self, factor: float) -> Kernel:
        weight = positive_number(factor, "kernel scaling")
        return as_kernel(
            tuple(replace(summand, weight=summand.weight * weight) for summand in self.summands)
        )

    __rmul__ = __mul__

    def cov(self, s: Array, t: Array) -> Array:
        """Covariance of the curve between times s and t.

        Parameters
        ----------
        s, t : float or array
            Times, which broadcast. Bandwidths are in the same unit.

        Returns
        -------
        array of the broadcast shape
            Covariances, without the nugget.

        Raises
        ------
        InputError
            If a hyper-parameter is still to be learned.
        """
        return sum(
            (summand.variance * summand.correlation(s, t) for summand in self.summands),
            np.zeros(()),
        )

    def cov_slope(self, s: Array, t: Array) -> Array:
        """Covariance of the curve's time derivative at s with its value at t, which broadcast."""
        return sum(
            (summand.variance * summand.correlation_ds(s, t) for summand in self.summands),
            np.zeros(()),
        )

    def cov_slopes(self, s: Array, t: Array) -> Array:
        """Covariance of the curve's time derivatives at s and t, which broadcast."""
        return sum(
            (summand.variance * summand.correlation_dsdt(s, t) for summand in self.summands),
            np.zeros(()),
        )

    @property
    def nugget_variance(self) -> float:
        """Nugget: independent variance at each instant, 0 for a constant curve."""
        return (
            0.0
            if self.static
            else sum(summand.variance * summand.relative_nugget for summand in self.summands)
        )

    @property
    def static(self) -> bool:
        """Whether the curve is constant in time."""
        return all(summand.constant for summand in self.summands)

    @property
    def low_rank(self) -> bool:
        """Whether every summand has a finite basis, so that weight space can be used."""
        return all(summand.has_finite_basis for summand in self.summands)

    def anchored(self, first: float, last: float) -> Kernel:
        """The kernel with what depends on the data's time span filled in.

        Parameters
        ----------
        first, last : float
            First and last time of the data.

        Returns
        -------
        Kernel
            The kernel with origins of random walks, and centres and reaches of trends.
        """
        return as_kernel(tuple(summand.anchored_summand(first, last) for summand in self.summands))

    def describe(self) -> str:
        """Names and hyper-parameters of the summands, as text."""
        return " + ".join(summand.describe_summand() for summand in self.summands)


def as_kernel(summands: tuple[BaseKernel, ...]) -> Kernel:
    """The only summand itself, or several as their sum."""
    return summands[0] if len(summands) == 1 else Sum(summands)


@dataclass(frozen=True)
class Sum(Kernel):
    """Sum of several simple kernels: the kernel of a sum of independent curves."""

    parts: tuple[BaseKernel, ...]

    @property
    def summands(self) -> tuple[BaseKernel, ...]:
        return self.parts


@dataclass(frozen=True)
class BaseKernel(Kernel):
    """Base class of simple kernels: covariance weight · amplitude² · correlation(s, t).

    Subclasses have their hyper-parameters as fields; `weight` is given by name.
    """

    weight: float = field(default=1.0, kw_only=True)

    slope_error: ClassVar[str] = "its curves have no derivative; use RBF, Matern32 or Matern52"

    @property
    def amplitude(self) -> Amplitude:
        """Standard deviation of the curve before the weight, a field of every subclass."""
        return None

    @property
    def has_finite_basis(self) -> bool:
        """Whether a finite set of basis functions represents the kernel."""
        return True

    @property
    def relative_nugget(self) -> float:
        """Nugget relative to the summand's variance."""
        return 0.0

    def __post_init__(self) -> None:
        if self.amplitude is not None and self.amplitude != "learn":
            object.__setattr__(
                self, "amplitude", positive_number(self.amplitude, f"{self.title} amplitude")
            )

    @property
    def summands(self) -> tuple[BaseKernel, ...]:
        return (self,)

    @property
    def title(self) -> str:
        """Name of the kernel, such as "RBF"."""
        return type(self).__name__

    @property
    def constant(self) -> bool:
        """Whether the curve is constant in time."""
        return False

    @property
    def variance(self) -> float:
        """Variance of the curve: weight · amplitude²."""
        return self.weight * (1.0 if self.amplitude is None else self.value_of("amplitude") ** 2)

    def value_of(self, name: str) -> float:
        """Value of a hyper-parameter that has been set to a number.

        Raises
        ------
        InputError
            If it is still a word, such as "learn", or None.
        """
        value = getattr(self, name)
        if not isinstance(value, float):
            raise InputError(
                f"{self.title} {name}: {value!r} is still to be set; give a number to use the "
                "kernel by itself"
            )
        return value

    def describe_summand(self) -> str:
        """Name and hyper-parameters, as text."""
        return f"{self.title}(sd {np.sqrt(self.variance):.4g})"

    @abstractmethod
    def correlation(self, s: Array, t: Array) -> Array:
        """Covariance between times s and t, which broadcast, at unit weight and amplitude."""

    def correlation_ds(self, s: Array, t: Array) -> Array:  # noqa: ARG002
        """Derivative ∂/∂s of the correlation."""
        raise InputError(f"{self.title}: {self.slope_error}")

    def correlation_dsdt(self, s: Array, t: Array) -> Array:  # noqa: ARG002
        """Derivative ∂²/∂s∂t of the correlation."""
        raise InputError(f"{self.title}: {self.slope_error}")

    def anchored_summand(self, first: float, last: float) -> BaseKernel:  # noqa: ARG002
        """The summand with what depends on the data's time span filled in."""
        return self


@dataclass(frozen=True)
class BandwidthKernel(BaseKernel):
    """Base class of kernels with a bandwidth h: a number, inf, or a word for how to choose it."""

    bandwidth: Bandwidth = "learn"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.bandwidth, str):
            if self.bandwidth not in METHODS:
                raise InputError(
                    f"bandwidth: {self.bandwidth!r} is none of {', '.join(METHODS)}, nor a "
                    "positive number"
                )
        else:
            object.__setattr__(
                self, "bandwidth", positive_number(self.bandwidth, "bandwidth", infinite=True)
            )

    @property
    def constant(self) -> bool:
        return self.bandwidth == np.inf

    def scaled(self, s: Array, t: Array) -> Array:
        """Time differences in bandwidths: (s − t)/h."""
        return (s - t) / self.value_of("bandwidth")

    def describe_summand(self) -> str:
        bandwidth = self.value_of("bandwidth")
        return f"{self.title}(sd {np.sqrt(self.variance):.4g}, bandwidth {bandwidth:.4g})"


@dataclass(frozen=True)
class RBF(BandwidthKernel):
    """Radial basis function kernel: exp(−½ ((s − t)/h)²), for infinitely smooth curves.

    Parameters
    ----------
    bandwidth : float or {"learn", "evidence", "loo", "cv"}, default "learn"
        Time scale h, in the unit of the times; inf is a constant curve. "learn" averages over a
        grid of bandwidths; "evidence", "loo" and "cv" pick the best by log evidence, leave-one-out
        or cross-validation (single curves only).
    amplitude : float or "learn", optional
        Standard deviation of the curve. Default: 1 where that is a fair prior (probabilities,
        abilities), else learned.
    nugget : float, default 1e-4
        Independent variance at each instant, relative to the variance of the curve.
    weight : float, default 1
        Factor of the variance, set by scaling the kernel.

    Examples
    --------
    >>> import dynaesti as dy
    >>> round(float(dy.RBF(bandwidth=2.0).cov(0.0, 2.0)), 4)  # exp(−½)
    0.6065
    """

    bandwidth: Bandwidth = "learn"
    amplitude: Amplitude = None
    nugget: float = 1e-4

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nugget != 0:
            object.__setattr__(self, "nugget", positive_number(self.nugget, "RBF nugget"))

    @property
    def relative_nugget(self) -> float:
        return 0.0 if self.constant else self.nugget

    def correlation(self, s: Array, t: Array) -> Array:
        with np.errstate(over="ignore"):  # bandwidths of 1e-200: nothing is near anything else
            return np.exp(-0.5 * self.scaled(s, t) ** 2)

    def correlation_ds(self, s: Array, t: Array) -> Array:
        d = self.scaled(s, t)
        return -d / self.value_of("bandwidth") * np.exp(-0.5 * d**2)

    def correlation_dsdt(self, s: Array, t: Array) -> Array:
        d = self.scaled(s, t)
        return (1 - d**2) / self.value_of("bandwidth") ** 2 * np.exp(-0.5 * d**2)


@dataclass(frozen=True)
class Matern(BandwidthKernel):
    """Base class of Matérn kernels of half-integer order.

    They are exact in state space, at a cost linear in the number of times.
    """

    bandwidth: Bandwidth = "learn"
    amplitude: Amplitude = None

    order: ClassVar[int]  # dimension of the state: the curve and its derivatives
    rate: ClassVar[float]  # decay per bandwidth

    @property
    def has_finite_basis(self) -> bool:
        return self.constant

    @property
    def relative_nugget(self) -> float:
        return ROUNDING_NUGGET


@dataclass(frozen=True)
class Matern12(Matern):
    """Matérn ½ kernel: ``exp(−|s − t|/h)``, for continuous curves that are nowhere differentiable.

    It is the covariance of the Ornstein–Uhlenbeck process.

    Parameters
    ----------
    bandwidth : float or {"learn", "evidence", "loo", "cv"}, default "learn"
        Time scale h, in the unit of the times; inf is a constant curve. "learn" averages over a
        grid of bandwidths; "evidence", "loo" and "cv" pick the best by log evidence, leave-one-out
        or cross-validation (single curves only).
    amplitude : float or "learn", optional
        Standard deviation of the curve. Default: 1 where that is a fair prior (probabilities,
        abilities), else learned.
    weight : float, default 1
        Factor of the variance, set by scaling the kernel.

    Examples
    --------
    >>> import dynaesti as dy
    >>> round(float(dy.Matern12(bandwidth=2.0).cov(0.0, 2.0)), 4)  # exp(−1)
    0.3679
    """

    order = 1
    rate = 1.0

    def correlation(self, s: Array, t: Array) -> Array:
        return np.exp(-np.abs(self.scaled(s, t)))


@dataclass(frozen=True)
class Matern32(Matern):
    """Matérn 3/2 kernel: ``(1 + r) e⁻ʳ``, ``r = √3 |s − t|/h``; one derivative.

    Parameters
    ----------
    bandwidth, amplitude, weight
        As of `RBF`: time scale h, standard deviation of the curve, factor of its variance.

    Examples
    --------
    >>> import dynaesti as dy
    >>> round(float(dy.Matern32(bandwidth=2.0).cov(0.0, 2.0)), 4)
    0.4834
    """

    order = 2
    rate = SQRT3

    def correlation(self, s: Array, t: Array) -> Array:
        r = SQRT3 * np.abs(self.scaled(s, t))
        return (1 + r) * np.exp(-r)

    def correlation_ds(self, s: Array, t: Array) -> Array:
        d = self.scaled(s, t)
        return -3 * d / self.value_of("bandwidth") * np.exp(-SQRT3 * np.abs(d))

    def correlation_dsdt(self, s: Array, t: Array) -> Array:
        r = SQRT3 * np.abs(self.scaled(s, t))
        return 3 / self.value_of("bandwidth") ** 2 * (1 - r) * np.exp(-r)


@dataclass(frozen=True)
class Matern52(Matern):
    """Matérn 5/2 kernel: ``(1 + r + r²/3) e⁻ʳ``, ``r = √5 |s − t|/h``; two derivatives.

    Parameters
    ----------
    bandwidth, amplitude, weight
        As of `RBF`: time scale h, standard deviation of the curve, factor of its variance.

    Examples
    --------
    >>> import dynaesti as dy
    >>> kernel = dy.Matern52(bandwidth=2.0)
    >>> [round(float(kernel.cov(0.0, t)), 3) for t in (0.0, 2.0, 4.0)]
    [1.0, 0.524, 0.139]
    """

    order = 3
    rate = SQRT5

    def correlation(self, s: Array, t: Array) -> Array:
        r = SQRT5 * np.abs(self.scaled(s, t))
        return (1 + r + r**2 / 3) * np.exp(-r)

    def correlation_ds(self, s: Array, t: Array) -> Array:
        d = self.scaled(s, t)
        r = SQRT5 * np.abs(d)
        return -5 / 3 * d / self.value_of("bandwidth") * (1 + r) * np.exp(-r)

    def correlation_dsdt(self, s: Array, t: Array) -> Array:
        r = SQRT5 * np.abs(self.scaled(s, t))
        return 5 / 3 / self.value_of("bandwidth") ** 2 * (1 + r - r**2) * np.exp(-r)


@dataclass(frozen=True)
class Smooth(BandwidthKernel):
    """A curve whose smoothness is learned: Matérn 3/2, Matérn 5/2 or RBF, by the evidence.

    It is open in this hyper-parameter as other kernels are in their bandwidth: estimators put each
    of `SMOOTHNESSES` in its place, and average over them or, in a population, mix them.

    Parameters
    ----------
    bandwidth, amplitude, weight
        As of `RBF`: time scale h, standard deviation of the curve, factor of its variance.

    Examples
    --------
    >>> import dynaesti as dy
    >>> curve = dy.CurvFiFE(dy.Smooth(2.0)).fit([0.0, 1.0, 2.0], dy.Bernoulli([0, 1, 0]))
    >>> [prior.kernel.title for prior in curve.priors]
    ['Matern32', 'Matern52', 'RBF']
    """

    bandwidth: Bandwidth = "learn"
    amplitude: Amplitude = None

    @property
    def has_finite_basis(self) -> bool:
        return self.constant

    def correlation(self, s: Array, t: Array) -> Array:  # noqa: ARG002
        raise InputError("kernel: the smoothness is still to be learned, by fitting data")


@dataclass(frozen=True)
class Wiener(BandwidthKernel):
    """Random walk from an origin on: start² + min(s − origin, t − origin)/h, times amplitude².

    Its variance is (start · amplitude)² at the origin, the first observation, and amplitude² more
    after each bandwidth of time. Before the origin the curve is constant.

    Parameters
    ----------
    bandwidth : float or {"learn", "evidence", "loo", "cv"}, default "learn"
        Time h in which the variance grows by amplitude², in the unit of the times. The words
        choose it as for `RBF`.
    amplitude : float or "learn", optional
        Standard deviation of the change over one bandwidth. Default: 1 where that is a fair prior
        (probabilities, abilities), else learned.
    start : float, default 1
        Standard deviation at the origin, relative to the amplitude.
    origin : float, optional
        Time at which the walk begins. Default: the first time of the data, filled in by the fit on
        its own time axis.
    weight : float, default 1
        Factor of the variance, set by scaling the kernel.

    Examples
    --------
    >>> import dynaesti as dy
    >>> walk = dy.Wiener(bandwidth=2.0).anchored(0.0, 10.0)
    >>> float(walk.cov(0.0, 0.0)), float(walk.cov(4.0, 4.0))
    (1.0, 3.0)
    """

    bandwidth: Bandwidth = "learn"
    amplitude: Amplitude = None
    start: float = 1.0
    origin: float | None = field(default=None, kw_only=True)

    order: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "start", positive_number(self.start, "Wiener start"))

    def anchored_summand(self, first: float, last: float) -> BaseKernel:  # noqa: ARG002
        return replace(self, origin=first) if self.origin is None else self

    @property
    def has_finite_basis(self) -> bool:
        return False

    @property
    def relative_nugget(self) -> float:
        return ROUNDING_NUGGET

    def elapsed(self, t: Array) -> Array:
        """Bandwidths of time since the origin, 0 before it: the variance gained."""
        return np.maximum(t - self.value_of("origin"), 0.0) / self.value_of("bandwidth")

    def correlation(self, s: Array, t: Array) -> Array:
        return self.start**2 + np.minimum(self.elapsed(s), self.elapsed(t))

    @property
    def constant(self) -> bool:
        return False


@dataclass(frozen=True)
class Level(BaseKernel):
    """Constant kernel: covariance 1 between all times, for a level that does not change.

    Parameters
    ----------
    amplitude : float or "learn", optional
        Standard deviation of the constant. Default: 1 where that is a fair prior (probabilities,
        abilities), else learned.
    weight : float, default 1
        Factor of the variance, set by scaling the kernel.

    Examples
    --------
    >>> import dynaesti as dy
    >>> float(dy.Level(amplitude=2.0).cov(0.0, 100.0))
    4.0
    """

    amplitude: Amplitude = None

    @property
    def constant(self) -> bool:
        return True

    def correlation(self, s: Array, t: Array) -> Array:
        return np.ones(np.broadcast(s, t).shape)

    def correlation_ds(self, s: Array, t: Array) -> Array:
        return np.zeros(np.broadcast(s, t).shape)

    correlation_dsdt = correlation_ds


@dataclass(frozen=True)
class Trend(BaseKernel):
    """Straight line: ((s − centre)/reach) · ((t − centre)/reach), 0 in the middle of the data.

    Parameters
    ----------
    amplitude : float or "learn", optional
        Standard deviation of the line at the first and the last time of the data. Default: 1 where
        that is a fair prior (probabilities, abilities), else learned.
    centre : float, optional
        Time at which the line is 0. Default: the middle of the data, filled in by the fit on its
        own time axis.
    reach : float, optional
        Time from the centre to where the standard deviation is `amplitude`. Default: half the
        length of the data, filled in with `centre`.
    weight : float, default 1
        Factor of the variance, set by scaling the kernel.

    Examples
    --------
    >>> import dynaesti as dy
    >>> line = dy.Trend().anchored(0.0, 10.0)
    >>> float(line.cov(0.0, 10.0)), float(line.cov(5.0, 5.0))
    (-1.0, 0.0)
    """

    amplitude: Amplitude = None
    centre: float | None = field(default=None, kw_only=True)
    reach: float | None = field(default=None, kw_only=True)

    def anchored_summand(self, first: float, last: float) -> BaseKernel:
        if self.centre is not None:
            return self
        return replace(self, centre=0.5 * (first + last), reach=0.5 * (last - first) or 1.0)

    @property
    def relative_nugget(self) -> float:
        # the line's variance is 0 at its centre: an emission there needs something to see
        return ROUNDING_NUGGET

    def line(self, t: Array) -> Array:
        """Value of the line of slope 1/reach at times t."""
        return (t - self.value_of("centre")) / self.value_of("reach")

    def correlation(self, s: Array, t: Array) -> Array:
        return self.line(s) * self.line(t)

    def correlation_ds(self, s: Array, t: Array) -> Array:
        return np.broadcast_to(self.line(t) / self.value_of("reach"), np.broadcast(s, t).shape)

    def correlation_dsdt(self, s: Array, t: Array) -> Array:
        return np.full(np.broadcast(s, t).shape, self.value_of("reach") ** -2.0)


@dataclass(frozen=True)
class Periodic(BandwidthKernel):
    """Periodic kernel: exp(−2 sin²(π (s − t)/period)/h²), for curves that repeat each period.

    Parameters
    ----------
    period : float
        Length of a period, in the unit of the times.
    bandwidth : float or {"learn", "evidence", "loo", "cv"}, default 1
        Smoothness h within a period, without unit: 1 is about one slow wave, smaller values allow
        faster changes. The words choose it as for `RBF`.
    amplitude : float or "learn", optional
        Standard deviation of the curve. Default: 1 where that is a fair prior (probabilities,
        abilities), else learned.
    weight : float, default 1
        Factor of the variance, set by scaling the kernel.

    Examples
    --------
    >>> import dynaesti as dy
    >>> week = dy.Periodic(period=7.0)
    >>> round(float(week.cov(0.0, 7.0)), 3), round(float(week.cov(0.0, 3.5)), 3)
    (1.0, 0.135)
    """

    period: float = 1.0
    bandwidth: Bandwidth = 1.0
    amplitude: Amplitude = None

    def __init__(
        self,
        period: float,
        bandwidth: Bandwidth = 1.0,
        amplitude: Amplitude = None,
        *,
        weight: float = 1.0,
    ) -> None:
        for key, value in (
            ("period", positive_number(period, "Periodic period")),
            ("bandwidth", bandwidth),
            ("amplitude", amplitude),
            ("weight", weight),
        ):
            object.__setattr__(self, key, value)
        self.__post_init__()

    def _phase(self, s: Array, t: Array) -> Array:
        """Time difference as an angle."""
        return 2 * np.pi * (s - t) / self.period

    def correlation(self, s: Array, t: Array) -> Array:
        return np.exp((np.cos(self._phase(s, t)) - 1) / self.value_of("bandwidth") ** 2)

    def correlation_ds(self, s: Array, t: Array) -> Array:
        rate = 2 * np.pi / self.period / self.value_of("bandwidth") ** 2
        return -rate * np.sin(self._phase(s, t)) * self.correlation(s, t)

    def correlation_dsdt(self, s: Array, t: Array) -> Array:
        rate = 2 * np.pi / self.period / self.value_of("bandwidth") ** 2
        phase = self._phase(s, t)
        return (
            rate * 2 * np.pi / self.period * np.cos(phase) - (rate * np.sin(phase)) ** 2
        ) * self.correlation(s, t)


@dataclass(frozen=True)
class AnswerKernel(BaseKernel):
    """Base class of what emissions see beside the curve: the curve itself has no part of it."""

    def correlation(self, s: Array, t: Array) -> Array:
        return np.zeros(np.broadcast(s, t).shape)

    def correlation_ds(self, s: Array, t: Array) -> Array:
        return np.zeros(np.broadcast(s, t).shape)

    def correlation_dsdt(self, s: Array, t: Array) -> Array:
        return np.zeros(np.broadcast(s, t).shape)


@dataclass(frozen=True)
class Noise(AnswerKernel):
    """Noise of its own at every emission, beside the curve: overdispersion.

    Polls differ by more than their sizes explain, counts by more than a Poisson distribution does:
    ``CurvFiFE(RBF() + Noise())`` learns by how much. For single curves.

    Parameters
    ----------
    amplitude : float or "learn", default "learn"
        Standard deviation of the noise, on the latent scale.
    weight : float, default 1
        Factor of the variance, set by scaling the kernel.

    Examples
    --------
    >>> import dynaesti as dy
    >>> kernel = dy.RBF(bandwidth=2.0) + dy.Noise(0.5)
    >>> float(kernel.cov(0.0, 0.0)), kernel.nugget_variance > 0.25
    (1.0, True)
    """

    amplitude: Amplitude = "learn"

    @property
    def relative_nugget(self) -> float:
        return 1.0


@dataclass(frozen=True)
class EffectBlock(AnswerKernel):
    """Effects of columns of the emissions, x·β, with normal β of one size."""

    size: int = 1  # number of columns
    amplitude: Amplitude = "learn"  # standard deviation of their effects

    def describe_summand(self) -> str:
        return f"{self.size} effects(sd {np.sqrt(self.variance):.4g})"


def effect_sds(kernel: Kernel) -> Array:
    """Prior standard deviations of the effects of all columns, (n_columns,)."""
    blocks = [one for one in kernel.summands if isinstance(one, EffectBlock)]
    sizes = [one.size for one in blocks]
    return np.repeat([float(np.sqrt(one.variance)) for one in blocks], sizes)


def of_the_curve(kernel: Kernel) -> tuple[BaseKernel, ...]:
    """The summands that are the curve, without what emissions see beside it."""
    return tuple(one for one in kernel.summands if not isinstance(one, AnswerKernel))


KERNELS: dict[str, type[BaseKernel]] = {
    cls.__name__: cls
    for cls in (
        RBF,
        Matern12,
        Matern32,
        Matern52,
        Wiener,
        Level,
        Trend,
        Periodic,
        Noise,
        EffectBlock,
    )
}
# What may stand for a `Smooth` summand, from rough to smooth, with the bandwidth that varies about
# as fast as a Matérn 3/2 curve of bandwidth 1 (by the best ones on curves of each kind)
SMOOTHNESSES: tuple[tuple[type[BandwidthKernel], float], ...] = (
    (Matern32, 1.0),
    (Matern52, 0.85),
    (RBF, 0.7),
)


def smoothness_choices(kernel: Kernel) -> tuple[tuple[Kernel, float], ...]:
    """The kernel with each smoothness for its `Smooth` summands, from rough to smooth.

    Beside each stands its bandwidth relative to that of the roughest. The kernel alone where it has
    no such summand.
    """
    if not any(isinstance(summand, Smooth) for summand in kernel.summands):
        return ((kernel, 1.0),)
    return tuple((_with_smoothness(kernel, cls), ratio) for cls, ratio in SMOOTHNESSES)


def _with_smoothness(kernel: Kernel, cls: type[BandwidthKernel]) -> Kernel:
    """The kernel with summands of a class in place of `Smooth` ones."""
    return as_kernel(
        tuple(
            cls(**{f.name: getattr(summand, f.name) for f in fields(summand)})
            if isinstance(summand, Smooth)
            else summand
            for summand in kernel.summands
        )
    )


NAMED_KERNELS: dict[str, Callable[[], Kernel]] = {
    "rbf": RBF,
    "matern32": Matern32,
    "level+rbf": lambda: Level(amplitude="learn") + RBF(amplitude="learn"),
    "level+matern32": lambda: Level(amplitude="learn") + Matern32(amplitude="learn"),
    "level+smooth": lambda: Level(amplitude="learn") + Smooth(amplitude="learn"),
}
DEFAULT_KERNEL = "level+smooth"  # on evidence: see docs/evidence/kernels.md


def named_kernel(name: str) -> Kernel:
    """Kernel of abilities by its name, one of `NAMED_KERNELS` in any case."""
    if name.lower() not in NAMED_KERNELS:
        raise InputError(
            f"kernel: no kernel is called {name!r}; there are {', '.join(NAMED_KERNELS)}, or give "
            "one such as Level() + RBF()"
        )
    return NAMED_KERNELS[name.lower()]()


def kernel_header(kernel: Kernel) -> list[Header]:
    """Name and hyper-parameters of each summand, as they are saved."""
    return [
        {"kernel": summand.title, **{f.name: getattr(summand, f.name) for f in fields(summand)}}
        for summand in kernel.summands
    ]


def read_kernel(summands: list[Header]) -> Kernel:
    """Kernel from `kernel_header`, with hyper-parameters that are numbers or None."""
    kernel = as_kernel(
        tuple(
            KERNELS[summand["kernel"]](**{k: v for k, v in summand.items() if k != "kernel"})
            for summand in summands
        )
    )
    for summand in kernel.summands:
        require(
            all(
                value is None or (is_number(value) and value >= 0)
                for value in vars(summand).values()
            ),
            f"a prior is malformed: {summand}",
        )
        require(
            np.isfinite(summand.variance) and summand.variance > 0,
            f"a prior is malformed: {summand}",
        )
    return kernel
