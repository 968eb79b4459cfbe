"""Gaussian sites in natural parameters."""

from dynaesti.core import Array


def through_nugget(
    precision: Array, shift: Array, nugget_variance: Array | float
) -> tuple[Array, Array]:
    """Gaussian sites on emission values as sites on the curve, the nugget between them integrated
    out.
    """
    thin = 1.0 + nugget_variance * precision
    return precision / thin, shift / thin
