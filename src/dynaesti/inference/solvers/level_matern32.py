"""The default prior of abilities, a level plus Matérn 3/2, by hand.

The state-space solver with its three states written out.

The same filter and adjoint as in `statespace`, three times as fast: abilities of millions go
through it at every sweep.
"""

from dataclasses import dataclass

import numpy as np

from dynaesti.core import Array, Bools, Ints, jit
from dynaesti.model import Kernel, Level, Matern32


@jit
def smooth_level_matern32(
    gaps: Array,
    decay: Array,
    rate: float,
    variance: float,
    level: float,
    precision: Array,
    shift: Array,
    mean: Array,
    var: Array,
    kept: Array,
) -> tuple[float, bool]:
    """Posterior mean and variance of the curve at every site: (log ∫ prior × sites, proper).

    The states are the Matérn curve, its slope and the level (as a standard normal, seen through
    `level`, its sd). `gaps` are times since the site before (unused at the first), `decay` is
    exp(−rate · gap); `kept` (sites, 5) is room for the way back.
    """
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
        tau = precision[k]
        nu = shift[k]
        pivot = 1.0 + tau * s
        if abs(pivot) < 1e-10:
            return 0.0, False
        if pivot < 0.0:
            flips += 1 if tau > 0.0 else -1
        each = 1.0 / pivot
        kappa = tau * each
        pull = (nu - tau * m) * each
        log_partition += (0.5 * nu * nu * s + nu * m - 0.5 * tau * m * m) * each
        product *= abs(pivot)
        if not 1e-100 < product < 1e100:  # one logarithm for many sites
            log_partition -= 0.5 * np.log(product)
            product = 1.0
        kept[k, 0] = ux
        kept[k, 1] = uy
        kept[k, 2] = uc
        kept[k, 3] = kappa
        kept[k, 4] = pull
        mean[k] = m
        var[k] = s
        x = x + ux * pull
        y = y + uy * pull
        c = c + uc * pull
        pxx = pxx - kappa * ux * ux
        pxy = pxy - kappa * ux * uy
        pyy = pyy - kappa * uy * uy
        pxc = pxc - kappa * ux * uc
        pyc = pyc - kappa * uy * uc
        pcc = pcc - kappa * uc * uc
    log_partition -= 0.5 * np.log(product)
    if flips != 0:
        return 0.0, False
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
        pull = kept[k, 4]
        wx = bxx * ux + bxy * uy + bxc * uc
        wy = bxy * ux + byy * uy + byc * uc
        wc = bxc * ux + byc * uy + bcc * uc
        heavy = kappa + kappa * kappa * (ux * wx + uy * wy + uc * wc)
        back = kappa * (ux * lx + uy * ly + uc * lc) + pull
        lx = lx - back
        lc = lc - level * back
        bxx += heavy - 2.0 * kappa * wx
        bxy -= kappa * wy
        bxc += level * heavy - kappa * (wc + level * wx)
        byc -= kappa * level * wy
        bcc += level * (level * heavy - 2.0 * kappa * wc)
        mean[k] -= ux * lx + uy * ly + uc * lc
        var[k] -= (
            ux * (bxx * ux + 2.0 * (bxy * uy + bxc * uc))
            + uy * (byy * uy + 2.0 * byc * uc)
            + bcc * uc * uc
        )
        if not var[k] > 0.0:
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
    return log_partition, proper


@jit
def _smooth_curves(
    jobs: Ints,
    site_start: Ints,
    gaps: Array,
    decay: Array,
    rate: float,
    variance: float,
    level: float,
    precision: Array,
    shift: Array,
    mean: Array,
    var: Array,
    log_partition: Array,
    proper: Bools,
) -> None:
    most = 0
    for job in jobs:
        most = max(most, site_start[job + 1] - site_start[job])
    kept = np.empty((most, 5))
    for job in jobs:
        a = site_start[job]
        b = site_start[job + 1]
        log_partition[job], proper[job] = smooth_level_matern32(
            gaps[a:b],
            decay[a:b],
            rate,
            variance,
            level,
            precision[a:b],
            shift[a:b],
            mean[a:b],
            var[a:b],
            kept,
        )


@dataclass(frozen=True)
class LevelMatern32Form:
    """A kernel of this shape: rate and variance of the Matérn part, sd of the level."""

    rate: float
    variance: float
    level: float


def level_matern32_form(kernel: Kernel) -> LevelMatern32Form | None:
    """The numbers of a Matérn 3/2 with or without a level; None for other kernels."""
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
    """Many curves of one such kernel."""

    form: LevelMatern32Form
    gaps: Array
    decay: Array
    site_start: Ints

    def marginals(
        self,
        jobs: Ints,
        precision: Array,
        shift: Array,
        mean: Array,
        var: Array,
        log_partition: Array,
        proper: Bools,
    ) -> None:
        """Fill the posterior marginals at the sites of the chosen jobs."""
        form = self.form
        _smooth_curves(
            jobs,
            self.site_start,
            self.gaps,
            self.decay,
            form.rate,
            form.variance,
            form.level,
            precision,
            shift,
            mean,
            var,
            log_partition,
            proper,
        )


def level_matern32_solver(
    form: LevelMatern32Form, times: Array, site_start: Ints
) -> LevelMatern32Solver:
    """The solver for curves at rising instants, one after the other."""
    gaps = np.diff(times, prepend=times[:1])
    gaps[site_start[:-1]] = 0.0
    return LevelMatern32Solver(form, gaps, np.exp(-form.rate * gaps), site_start)
