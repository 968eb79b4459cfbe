"""Links: monotone maps between the latent curve x(t), a Gaussian process, and the curve y(t).

Emissions see y(t), and results are reported as y(t).
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
    """Base class of links: y = value(x), x = latent(y), strictly monotone.

    The logarithms keep their digits where y rounds to 0 or 1.

    Attributes
    ----------
    name : str
        Name by which the link is chosen, and under which it is saved.
    range : str
        Values that y can take: `REAL`, `POSITIVE` or `UNIT`.
    sign : int
        1 for an increasing link, −1 for a decreasing pair of functions.
    """

    name: str
    range: str
    sign: int = 1

    def value(self, x: Array) -> Array:
        """Value y on the link's scale from latent x."""
        raise NotImplementedError

    def latent(self, y: Array) -> Array:
        """Latent x from the value y on the link's scale: the inverse of `value`."""
        raise NotImplementedError

    def slope(self, x: Array) -> Array:
        """Derivative dy/dx at latent x."""
        raise NotImplementedError

    def log_value(self, x: Array) -> Array:
        """Logarithm of y."""
        return np.log(self.value(x))

    def log_complement(self, x: Array) -> Array:
        """Logarithm of 1 − y, for links into (0, 1)."""
        return np.log1p(-self.value(x))


class Identity(Link):
    """Identity link y = x: the curve is the Gaussian process itself."""

    name = "identity"
    range = REAL

    def value(self, x: Array) -> Array:
        return x

    def latent(self, y: Array) -> Array:
        return y

    def slope(self, x: Array) -> Array:
        return np.ones_like(x)


class Probit(Link):
    """Probit link y = Φ(x): a standard normal x makes y uniform on (0, 1)."""

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
    """Logit link y = 1/(1 + e⁻ˣ), for probabilities."""

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
    """Log link y = eˣ, for positive rates."""

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
    """Link from a user's pair of functions, which are inverse to each other.

    Parameters
    ----------
    value : callable
        Latent x → y, on arrays; strictly monotone between −4 and 4.
    latent : callable
        y → latent x, on arrays; the inverse of `value`.

    Raises
    ------
    InputError
        If a function fails, `value` is not monotone, or `latent` does not undo it.
    """

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
    """Link from its name, a pair of functions (latent → scale, scale → latent), or a Link."""
    if isinstance(link, Link):
        return link
    if isinstance(link, str) and link in BUILT_IN:
        return BUILT_IN[link]
    if isinstance(link, tuple) and len(link) == 2 and all(callable(part) for part in link):
        return CustomLink(*link)
    raise InputError(
        f"link: {link!r} is none of {', '.join(BUILT_IN)} nor a pair of functions (latent → "
        "scale, scale → latent)"
    )


@dataclass(frozen=True)
class LinkedPoints:
    """Latent points seen through a link, in every form that emission families compute with.

    Parameters
    ----------
    x : array
        Latent values.
    link : Link
        The link.
    """

    x: Array
    link: Link

    @cached_property
    def y(self) -> Array:
        """Values on the link's scale."""
        return self.link.value(self.x)

    @cached_property
    def log(self) -> Array:
        """Logarithm of y."""
        return self.link.log_value(self.x)

    @cached_property
    def log_complement(self) -> Array:
        """Logarithm of 1 − y, for links into (0, 1)."""
        return self.link.log_complement(self.x)
