"""Gaussian sites in natural parameters."""

from dynaesti.core import Array


def seen_by_curve(
    precision: Array, shift: Array, instant_var: Array | float
) -> tuple[Array, Array]:
    """Gaussian sites on emission values as sites on the curve, the nugget between them integrated out."""
    thin = 1.0 + instant_var * precision
    return precision / thin, shift / thin
