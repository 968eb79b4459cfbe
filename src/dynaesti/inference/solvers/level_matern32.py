"""Solver for the default prior of abilities, a level plus Matérn 3/2.

The filter and adjoint of `state_space`, with the three states written out: three times as fast.
Abilities of millions of people pass through it at every sweep.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynaesti.core import Array, Bools, Ints, jit, jit_internal, longest_row
from dynaesti.inference.sites import Moments, NaturalGaussian
from dynaesti.model import Kernel, Level, Matern32


class LevelMatern32Chain(NamedTuple):
    """One curve at rising instants, as compiled passes read it."""

    gaps: Array  # (n_sites,) times since the site before, 0 at the first
    decay: Array  # (n_sites,) exp(−rate · gap)
    rate: float
    variance: float  # of the Matérn part
    level: float  # sd of the level


@jit
def smooth_level_matern32(
    chain: LevelMatern32Chain, latent: NaturalGaussian, posterior: Moments, kept: Array
) -> tuple[float, bool]:
    """Compute posterior moments of the curve at every site.

    The states are the Matérn curve, its slope and the level (a standard normal times its sd).
    ``kept`` (n_sites, 5) is memory for the backward pass.

    Returns
    -------
    log_partition : float
        log ∫ prior × sites.
    proper : bool
    """
    log_partition, proper = _filter(chain, latent, posterior, kept)
    if not proper:
        return 0.0, False
    return log_partition, _smooth(chain, posterior, kept)


@jit_internal
def _filter(
    chain: LevelMatern32Chain, latent: NaturalGaussian, predicted: Moments, kept: Array
) -> tuple[float, bool]:
    """Forward pass: one-step predictions at every site; returns (log ∫ prior × sites, proper).

    A negative site may make a pivot negative although the posterior is proper. It is proper if as
    many positive sites as negative ones have a negative pivot: see `state_space`.
    """
    gaps, decay = chain.gaps, chain.decay
    rate, variance, level = chain.rate, chain.variance, chain.level
    n = gaps.size
    x = 0.0
    y = 0.0
    c = 0.0
    pxx = variance
    pxy = 0.0
    pyy = variance * rate * rate
    pxc = 0.0
    pyc = 0.0
    pcc = 1.0
    square = rate * rate
    log_partition = 0.0
    product = 1.0
    flips = 0
    for k in range(n):
        if k > 0:
            g = gaps[k]
            e = decay[k]
            axx = e * (1.0 + rate * g)
            axy = e * g
            ayx = -e * square * g
            ayy = e * (1.0 - rate * g)
            x, y = axx * x + axy * y, ayx * x + ayy * y
            # noise = stationary − A · stationary · Aᵀ
            rx = pxx - variance
            ry = pyy - variance * square
            nxx = variance + axx * (axx * rx + axy * pxy) + axy * (axx * pxy + axy * ry)
            nxy = ayx * (axx * rx + axy * pxy) + ayy * (axx * pxy + axy * ry)
            nyy = variance * square + ayx * (ayx * rx + ayy * pxy) + ayy * (ayx * pxy + ayy * ry)
            pxx = nxx
            pxy = nxy
            pyy = nyy
            pxc, pyc = axx * pxc + axy * pyc, ayx * pxc + ayy * pyc
        ux = pxx + level * pxc
        uy = pxy + level * pyc
        uc = pxc + level * pcc
        s = ux + level * uc
        m = x + level * c
        tau = latent.precision[k]
        nu = latent.shift[k]
        pivot = 1.0 + tau * s
        if abs(pivot) < 1e-10:
            return 0.0, False
        if pivot < 0.0:
            flips += 1 if tau > 0.0 else -1
        inverse = 1.0 / pivot
        kappa = tau * inverse
        gain = (nu - tau * m) * inverse
        log_partition += (0.5 * nu * nu * s + nu * m - 0.5 * tau * m * m) * inverse
        product *= abs(pivot)
        if not 1e-100 < product < 1e100:  # one logarithm for many sites
            log_partition -= 0.5 * np.log(product)
            product = 1.0
        kept[k, 0] = ux
        kept[k, 1] = uy
        kept[k, 2] = uc
        kept[k, 3] = kappa
        kept[k, 4] = gain
        predicted.mean[k] = m
        predicted.variance[k] = s
        x = x + ux * gain
        y = y + uy * gain
        c = c + uc * gain
        pxx = pxx - kappa * ux * ux
        pxy = pxy - kappa * ux * uy
        pyy = pyy - kappa * uy * uy
        pxc = pxc - kappa * ux * uc
        pyc = pyc - kappa * uy * uc
        pcc = pcc - kappa * uc * uc
    log_partition -= 0.5 * np.log(product)
    return log_partition, flips == 0


@jit_internal
def _smooth(chain: LevelMatern32Chain, posterior: Moments, kept: Array) -> bool:
    """Backward pass: predictions become posterior moments, by the adjoint of the filter.

    Returns whether all variances are positive.
    """
    gaps, decay = chain.gaps, chain.decay
    rate, level = chain.rate, chain.level
    n = gaps.size
    square = rate * rate
    lx = 0.0
    ly = 0.0
    lc = 0.0
    bxx = 0.0
    bxy = 0.0
    byy = 0.0
    bxc = 0.0
    byc = 0.0
    bcc = 0.0
    proper = True
    for k in range(n - 1, -1, -1):
        ux = kept[k, 0]
        uy = kept[k, 1]
        uc = kept[k, 2]
        kappa = kept[k, 3]
        gain = kept[k, 4]
        wx = bxx * ux + bxy * uy + bxc * uc
        wy = bxy * ux + byy * uy + byc * uc
        wc = bxc * ux + byc * uy + bcc * uc
        weight = kappa + kappa * kappa * (ux * wx + uy * wy + uc * wc)
        back = kappa * (ux * lx + uy * ly + uc * lc) + gain
        lx = lx - back
        lc = lc - level * back
        bxx += weight - 2.0 * kappa * wx
        bxy -= kappa * wy
        bxc += level * weight - kappa * (wc + level * wx)
        byc -= kappa * level * wy
        bcc += level * (level * weight - 2.0 * kappa * wc)
        posterior.mean[k] -= ux * lx + uy * ly + uc * lc
        posterior.variance[k] -= (
            ux * (bxx * ux + 2.0 * (bxy * uy + bxc * uc))
            + uy * (byy * uy + 2.0 * byc * uc)
            + bcc * uc * uc
        )
        if not posterior.variance[k] > 0.0:
            proper = False
        if k > 0:
            g = gaps[k]
            e = decay[k]
            axx = e * (1.0 + rate * g)
            axy = e * g
            ayx = -e * square * g
            ayy = e * (1.0 - rate * g)
            lx, ly = axx * lx + ayx * ly, axy * lx + ayy * ly
            tx = bxx * axx + bxy * ayx
            ty = bxy * axx + byy * ayx
            sx = bxx * axy + bxy * ayy
            sy = bxy * axy + byy * ayy
            bxx = axx * tx + ayx * ty
            bxy = axx * sx + ayx * sy
            byy = axy * sx + ayy * sy
            bxc, byc = axx * bxc + ayx * byc, axy * bxc + ayy * byc
    return proper


@jit
def _smooth_curves(
    curves: Ints,
    site_start: Ints,
    chain: LevelMatern32Chain,
    latent: NaturalGaussian,
    posterior: Moments,
    log_partition: Array,
    proper: Bools,
) -> None:
    """Compute posterior moments of the chosen curves, one after the other."""
    longest = longest_row(site_start, curves)
    kept = np.empty((longest, 5))
    for curve in curves:
        a = site_start[curve]
        b = site_start[curve + 1]
        log_partition[curve], proper[curve] = smooth_level_matern32(
            LevelMatern32Chain(
                chain.gaps[a:b], chain.decay[a:b], chain.rate, chain.variance, chain.level
            ),
            NaturalGaussian(latent.precision[a:b], latent.shift[a:b]),
            Moments(posterior.mean[a:b], posterior.variance[a:b]),
            kept,
        )


@dataclass(frozen=True)
class LevelMatern32Form:
    """Numbers of a level plus Matérn 3/2: rate and variance of the Matérn part, level's sd."""

    rate: float
    variance: float
    level: float


def level_matern32_form(kernel: Kernel) -> LevelMatern32Form | None:
    """The parameters of a Matérn 3/2 with or without a level; None for other kernels."""
    moving = [summand for summand in kernel.summands if isinstance(summand, Matern32)]
    levels = [summand for summand in kernel.summands if isinstance(summand, Level)]
    if (
        len(moving) != 1
        or len(moving) + len(levels) != len(kernel.summands)
        or not np.isfinite(moving[0].value_of("bandwidth"))
    ):
        return None
    return LevelMatern32Form(
        moving[0].rate / moving[0].value_of("bandwidth"),
        moving[0].variance,
        float(np.sqrt(sum(summand.variance for summand in levels))),
    )


@dataclass(frozen=True)
class LevelMatern32Solver:
    """Many curves under one such kernel, laid end to end."""

    chain: LevelMatern32Chain
    site_start: Ints

    @property
    def size(self) -> int:
        """Numbers that the solver keeps in memory."""
        return self.chain.gaps.size + self.chain.decay.size

    def marginals(
        self,
        curves: Ints,
        latent_sites: NaturalGaussian,
        posterior: Moments,
        log_partition: Array,
        proper: Bools,
    ) -> None:
        """Compute posterior moments at the sites of the chosen curves: see `Solver.marginals`."""
        _smooth_curves(
            curves, self.site_start, self.chain, latent_sites, posterior, log_partition, proper
        )


def level_matern32_solver(
    form: LevelMatern32Form, times: Array, site_start: Ints
) -> LevelMatern32Solver:
    """The solver for curves at rising instants, one curve after the other."""
    gaps = np.diff(times, prepend=times[:1])
    gaps[site_start[:-1]] = 0.0
    decay = np.exp(-form.rate * gaps)
    chain = LevelMatern32Chain(gaps, decay, form.rate, form.variance, form.level)
    return LevelMatern32Solver(chain, site_start)
