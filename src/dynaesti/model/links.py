"""Monotone scales between the latent curve x(t), a Gaussian process, and the curve y(t) that
emissions see.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit, log_expit, log_ndtr, ndtr, ndtri

from dynaesti.core import Array
from dynaesti.errors import InputError

REAL = "any real number"
POSITIVE = "positive numbers"
UNIT = "numbers between 0 and 1"


class Link:
    """y = value(x), increasing.

    X = latent(y). The logarithms keep their digits where y rounds to 0 or 1.
    """

    name: str
    range: str
    sign: int = 1  # -1 for a decreasing pair of functions

    def value(self, x: Array) -> Array:
        """Latent to the link's scale."""
        raise NotImplementedError

    def latent(self, y: Array) -> Array:
        """The link's scale to latent."""
        raise NotImplementedError

    def slope(self, x: Array) -> Array:
        """dy/dx."""
        raise NotImplementedError

    def log_value(self, x: Array) -> Array:
        """Log y."""
        return np.log(self.value(x))

    def log_complement(self, x: Array) -> Array:
        """log(1 − y)."""
        return np.log1p(-self.value(x))


class Identity(Link):
    """The curve is the Gaussian process itself."""

    name = "identity"
    range = REAL

    def value(self, x: Array) -> Array:
        return x

    def latent(self, y: Array) -> Array:
        return y

    def slope(self, x: Array) -> Array:
        return np.ones_like(x)


class Probit(Link):
    """y = Φ(x): a standard normal x makes y uniform on (0, 1), the paper's bounded case."""

    name = "probit"
    range = UNIT

    def value(self, x: Array) -> Array:
        return np.asarray(ndtr(x))

    def latent(self, y: Array) -> Array:
        return np.asarray(ndtri(y))

    def slope(self, x: Array) -> Array:
        return np.asarray(np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi))

    def log_value(self, x: Array) -> Array:
        return np.asarray(log_ndtr(x))

    def log_complement(self, x: Array) -> Array:
        return np.asarray(log_ndtr(-x))


class Logit(Link):
    """y = 1/(1 + e⁻ˣ)."""

    name = "logit"
    range = UNIT

    def value(self, x: Array) -> Array:
        return np.asarray(expit(x))

    def latent(self, y: Array) -> Array:
        return np.log(y) - np.log1p(-y)

    def slope(self, x: Array) -> Array:
        return np.asarray(expit(x) * expit(-x))

    def log_value(self, x: Array) -> Array:
        return np.asarray(log_expit(x))

    def log_complement(self, x: Array) -> Array:
        return np.asarray(log_expit(-x))


class Log(Link):
    """y = eˣ, for rates."""

    name = "log"
    range = POSITIVE

    def value(self, x: Array) -> Array:
        return np.exp(x)

    def latent(self, y: Array) -> Array:
        return np.log(y)

    def slope(self, x: Array) -> Array:
        return np.exp(x)

    def log_value(self, x: Array) -> Array:
        return x


class CustomLink(Link):
    """A user's monotone pair of functions: value (latent → scale) and latent (scale → latent)."""

    name = "custom"

    def __init__(self, value: Callable[[Array], Any], latent: Callable[[Array], Any]) -> None:
        self._value = value
        self._latent = latent
        x = np.linspace(-4.0, 4.0, 81)
        try:
            y = self.value(x)
            back = self.latent(self.value(x))
        except Exception as error:  # whatever the user's functions raised
            raise InputError(f"link: a function raised {type(error).__name__}: {error}") from error
        if y.shape != x.shape or not np.all(np.isfinite(y)):
            raise InputError(
                "link: the first function must turn an array of latent values into as many finite "
                "values"
            )
        rises = np.diff(y)
        if not (np.all(rises > 0) or np.all(rises < 0)):
            raise InputError("link: the first function is not strictly monotone between -4 and 4")
        if back.shape != x.shape or not np.allclose(back, x, rtol=1e-6, atol=1e-6):
            raise InputError("link: the second function does not undo the first between -4 and 4")
        self.sign = 1 if rises[0] > 0 else -1
        with np.errstate(all="ignore"):
            far = self.value(np.array([-30.0, 30.0]))
        above = bool(np.all(y > 0) and np.all(far >= 0))
        below = bool(np.all(y < 1) and np.all(far <= 1))
        self.range = UNIT if above and below else POSITIVE if above else REAL

    def value(self, x: Array) -> Array:
        return np.asarray(self._value(x), dtype=np.float64)

    def latent(self, y: Array) -> Array:
        return np.asarray(self._latent(y), dtype=np.float64)

    def slope(self, x: Array) -> Array:
        step = 1e-5
        return (self.value(x + step) - self.value(x - step)) / (2 * step)


BUILT_IN: dict[str, Link] = {link.name: link for link in (Identity(), Probit(), Logit(), Log())}


def as_link(link: Any) -> Link:
    """A link from its name, a pair of functions (latent → scale, scale → latent), or a Link."""
    if isinstance(link, Link):
        return link
    if isinstance(link, str) and link in BUILT_IN:
        return BUILT_IN[link]
    if isinstance(link, tuple) and len(link) == 2 and all(callable(part) for part in link):
        return CustomLink(*link)
    raise InputError(
        f"link: {link!r} is none of {', '.join(BUILT_IN)} nor a pair of functions (latent → "
        f"scale, scale → latent)"
    )


@dataclass(frozen=True)
class LinkedPoints:
    """Latent points seen through a link.

    Each emission family takes the form it computes best with.
    """

    x: Array
    link: Link

    @cached_property
    def y(self) -> Array:
        """The value on the link's scale."""
        return self.link.value(self.x)

    @cached_property
    def log(self) -> Array:
        """Log y."""
        return self.link.log_value(self.x)

    @cached_property
    def log_complement(self) -> Array:
        """log(1 − y)."""
        return self.link.log_complement(self.x)
