"""Covariance kernels over time.

A kernel owns its hyper-parameters: numbers, or words that say how to learn them.

A leaf has covariance weight · amplitude² · correlation(s, t). Sums are tuples of leaves side by
side; scaling a kernel scales its weights, so `0.5 * Level() + 0.5 * RBF()` has total variance 1.
The nugget is variance (relative to the leaf's) that belongs to each instant alone: it widens what
an emission sees of the curve and is no part of the curve.
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
Amplitude: TypeAlias = (
    float | Literal["learn"] | None
)  # None: 1 where unit variance is a fair prior, else learned
METHODS: tuple[Method, ...] = ("learn", "evidence", "loo", "cv")
# a nugget for rounding's sake only: sharper emissions than 1e-5 of the amplitude would cost all
# digits of their cavities
ROUNDING_NUGGET = 1e-10
SQRT3 = float(np.sqrt(3.0))
SQRT5 = float(np.sqrt(5.0))


class Kernel(ABC):
    """What can be added, scaled and asked for covariances."""

    @property
    @abstractmethod
    def summands(self) -> tuple[BaseKernel, ...]:
        """The simple kernels whose sum this is."""

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
        """Covariance of the curve between times s and t, which broadcast."""
        return sum(
            (summand.variance * summand.correlation(s, t) for summand in self.summands),
            np.zeros(()),
        )

    def cov_slope(self, s: Array, t: Array) -> Array:
        """Covariance of the curve's slope at s with its value at t."""
        return sum(
            (summand.variance * summand.correlation_ds(s, t) for summand in self.summands),
            np.zeros(()),
        )

    def cov_slopes(self, s: Array, t: Array) -> Array:
        """Covariance of the slopes at s and t."""
        return sum(
            (summand.variance * summand.correlation_dsdt(s, t) for summand in self.summands),
            np.zeros(()),
        )

    @property
    def nugget_variance(self) -> float:
        """The nugget: variance of each instant alone. A constant curve has none."""
        return (
            0.0
            if self.static
            else sum(summand.variance * summand.relative_nugget for summand in self.summands)
        )

    @property
    def static(self) -> bool:
        """Whether the curve is one constant."""
        return all(summand.constant for summand in self.summands)

    @property
    def low_rank(self) -> bool:
        """Whether a few features carry it."""
        return all(summand.has_finite_basis for summand in self.summands)

    def anchored(self, first: float, last: float) -> Kernel:
        """The kernel with what depends on the data's span filled in."""
        return as_kernel(tuple(summand.anchored_summand(first, last) for summand in self.summands))

    def describe(self) -> str:
        """The kernel in words."""
        return " + ".join(summand.describe_summand() for summand in self.summands)


def as_kernel(summands: tuple[BaseKernel, ...]) -> Kernel:
    """One leaf as itself, several as their sum."""
    return summands[0] if len(summands) == 1 else Sum(summands)


@dataclass(frozen=True)
class Sum(Kernel):
    """Several kernels added."""

    parts: tuple[BaseKernel, ...]

    @property
    def summands(self) -> tuple[BaseKernel, ...]:
        return self.parts


@dataclass(frozen=True)
class BaseKernel(Kernel):
    """One simple kernel; subclasses name their hyper-parameters first, `weight` comes last and by
    name.
    """

    weight: float = field(default=1.0, kw_only=True)

    slope_error: ClassVar[str] = "its curves have no derivative; use RBF, Matern32 or Matern52"

    @property
    def amplitude(self) -> Amplitude:
        """Standard deviation of the curve, before the weight (each kernel has it as a field of its
        own).
        """
        return None

    @property
    def has_finite_basis(self) -> bool:
        """Whether low-rank features exist."""
        return True

    @property
    def relative_nugget(self) -> float:
        """The nugget, relative to the leaf's variance."""
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
        """The kernel's name."""
        return type(self).__name__

    @property
    def constant(self) -> bool:
        """Whether its curves are constants."""
        return False

    @property
    def variance(self) -> float:
        """Weight · amplitude²."""
        return self.weight * (1.0 if self.amplitude is None else self.value_of("amplitude") ** 2)

    def value_of(self, name: str) -> float:
        """A hyper-parameter's value; words must have been replaced by candidates before."""
        value = getattr(self, name)
        if not isinstance(value, float):
            raise InputError(
                f"{self.title} {name}: {value!r} is still to be set; give a number to use the "
                f"kernel by itself"
            )
        return value

    def describe_summand(self) -> str:
        """Name and hyper-parameters."""
        return f"{self.title}(sd {np.sqrt(self.variance):.4g})"

    @abstractmethod
    def correlation(self, s: Array, t: Array) -> Array:
        """Covariance at unit weight and amplitude."""

    def correlation_ds(self, s: Array, t: Array) -> Array:  # noqa: ARG002
        """∂/∂s of the correlation."""
        raise InputError(f"{self.title}: {self.slope_error}")

    def correlation_dsdt(self, s: Array, t: Array) -> Array:  # noqa: ARG002
        """∂²/∂s∂t of the correlation."""
        raise InputError(f"{self.title}: {self.slope_error}")

    def anchored_summand(self, first: float, last: float) -> BaseKernel:  # noqa: ARG002
        """The leaf with what depends on the data's span filled in."""
        return self


@dataclass(frozen=True)
class BandwidthKernel(BaseKernel):
    """A leaf with a time scale h: a number, inf, or how to choose it."""

    bandwidth: Bandwidth = "learn"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.bandwidth, str):
            if self.bandwidth not in METHODS:
                raise InputError(
                    f"bandwidth: {self.bandwidth!r} is none of {', '.join(METHODS)}, nor a "
                    f"positive number"
                )
        else:
            object.__setattr__(
                self, "bandwidth", positive_number(self.bandwidth, "bandwidth", infinite=True)
            )

    @property
    def constant(self) -> bool:
        return self.bandwidth == np.inf

    def scaled(self, s: Array, t: Array) -> Array:
        """(s − t)/h."""
        return (s - t) / self.value_of("bandwidth")

    def describe_summand(self) -> str:
        return f"{self.title}(sd {np.sqrt(self.variance):.4g}, bandwidth {self.value_of('bandwidth'):.4g})"


@dataclass(frozen=True)
class RBF(BandwidthKernel):
    """exp(−½((s − t)/h)²): the paper's kernel, for smooth curves; nugget 1e-4 as there."""

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
    """Kernels of half-integer smoothness: exact in state space at a cost linear in the data."""

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
    """exp(−|s − t|/h): continuous, nowhere smooth (Ornstein–Uhlenbeck)."""

    order = 1
    rate = 1.0

    def correlation(self, s: Array, t: Array) -> Array:
        return np.exp(-np.abs(self.scaled(s, t)))


@dataclass(frozen=True)
class Matern32(Matern):
    """(1 + r)e⁻ʳ with r = √3|s − t|/h: one derivative."""

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
    """(1 + r + r²/3)e⁻ʳ with r = √5|s − t|/h: two derivatives."""

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
class Wiener(BandwidthKernel):
    """A random walk from the first observation on.

    Variance start² there, amplitude² more with each bandwidth of time.

    `start` is relative to the amplitude. Before the first observation the curve is constant.
    """

    bandwidth: Bandwidth = "learn"
    amplitude: Amplitude = None
    start: float = 1.0
    origin: float | None = field(
        default=None, kw_only=True
    )  # filled in by the fit, on its own time axis

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
        """Variance gathered since the origin."""
        return np.maximum(t - self.value_of("origin"), 0.0) / self.value_of("bandwidth")

    def correlation(self, s: Array, t: Array) -> Array:
        return self.start**2 + np.minimum(self.elapsed(s), self.elapsed(t))

    @property
    def constant(self) -> bool:
        return False


@dataclass(frozen=True)
class Level(BaseKernel):
    """One constant for all times."""

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
    """A straight line through 0 in the middle of the data's span, with standard deviation
    `amplitude` at its ends.
    """

    amplitude: Amplitude = None
    centre: float | None = field(
        default=None, kw_only=True
    )  # filled in by the fit, on its own time axis
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
        """The line's value at each time for unit amplitude."""
        return (t - self.value_of("centre")) / self.value_of("reach")

    def correlation(self, s: Array, t: Array) -> Array:
        return self.line(s) * self.line(t)

    def correlation_ds(self, s: Array, t: Array) -> Array:
        return np.broadcast_to(self.line(t) / self.value_of("reach"), np.broadcast(s, t).shape)

    def correlation_dsdt(self, s: Array, t: Array) -> Array:
        return np.full(np.broadcast(s, t).shape, self.value_of("reach") ** -2.0)


@dataclass(frozen=True)
class Periodic(BandwidthKernel):
    """exp(−2 sin²(π(s − t)/period)/h²).

    Repeats each period; the bandwidth h counts within it (1 is one slow wave).
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
        return 2 * np.pi * (s - t) / self.period

    def correlation(self, s: Array, t: Array) -> Array:
        return np.exp((np.cos(self._phase(s, t)) - 1) / self.value_of("bandwidth") ** 2)

    def correlation_ds(self, s: Array, t: Array) -> Array:
        pull = 2 * np.pi / self.period / self.value_of("bandwidth") ** 2
        return -pull * np.sin(self._phase(s, t)) * self.correlation(s, t)

    def correlation_dsdt(self, s: Array, t: Array) -> Array:
        pull = 2 * np.pi / self.period / self.value_of("bandwidth") ** 2
        phase = self._phase(s, t)
        return (
            pull * 2 * np.pi / self.period * np.cos(phase) - (pull * np.sin(phase)) ** 2
        ) * self.correlation(s, t)


KERNELS: dict[str, type[BaseKernel]] = {
    cls.__name__: cls for cls in (RBF, Matern12, Matern32, Matern52, Wiener, Level, Trend, Periodic)
}
NAMED_KERNELS: dict[str, Callable[[], Kernel]] = {
    "rbf": RBF,
    "matern32": Matern32,
    "level+rbf": lambda: Level(amplitude="learn") + RBF(amplitude="learn"),
    "level+matern32": lambda: Level(amplitude="learn") + Matern32(amplitude="learn"),
}
DEFAULT_KERNEL = "level+matern32"  # on evidence: see docs/kernels.md


def named_kernel(name: str) -> Kernel:
    """A prior of abilities by its name."""
    if name.lower() not in NAMED_KERNELS:
        raise InputError(
            f"kernel: no kernel is called {name!r}; there are {', '.join(NAMED_KERNELS)}, or give "
            f"one such as Level() + RBF()"
        )
    return NAMED_KERNELS[name.lower()]()


def kernel_header(kernel: Kernel) -> list[Header]:
    """Leaf by leaf: name and hyper-parameters."""
    return [
        {"kernel": summand.title, **{f.name: getattr(summand, f.name) for f in fields(summand)}}
        for summand in kernel.summands
    ]


def read_kernel(summands: list[Header]) -> Kernel:
    """The kernel again: all that it owns is numbers by now."""
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
