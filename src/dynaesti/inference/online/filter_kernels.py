"""Compiled steps of filters: plain loops over people and kernels, on packed numbers.

A person's numbers are the time of the open instant, and for each kernel the log of its weight,
the site of the open instant (precision, shift), and mean and lower triangle of the covariance of
its states before that instant. So answers at one instant share its nugget, as in grafting.
"""

import numpy as np

from dynaesti.core import Array, jit, jit_internal
from dynaesti.inference.online.markov_form import MarkovForm

TIME = 0
FIRST = 1  # where the first kernel's numbers begin
LOG_WEIGHT, PRECISION, SHIFT, MEAN = range(4)  # within a kernel's numbers
WEIGHT_NOW, MEAN_NOW, VARIANCE_NOW, FOLLOWS_NOW = range(4)  # of a curve: see `curves_at`


@jit_internal
def _unpack(numbers: Array, d: int, x: Array, p: Array) -> None:
    """Mean and covariance of one kernel's states, from its numbers."""
    at = MEAN + d
    for i in range(d):
        x[i] = numbers[MEAN + i]
        for j in range(i + 1):
            p[i, j] = numbers[at]
            p[j, i] = numbers[at]
            at += 1


@jit_internal
def _pack(x: Array, p: Array, d: int, numbers: Array) -> None:
    """The inverse of `_unpack`."""
    at = MEAN + d
    for i in range(d):
        numbers[MEAN + i] = x[i]
        for j in range(i + 1):
            numbers[at] = p[i, j]
            at += 1


@jit_internal
def _reach(p: Array, seen: Array, d: int, reach: Array) -> float:
    """Covariance of the states with the curve; returns the variance of the curve."""
    variance = 0.0
    for i in range(d):
        s = 0.0
        for j in range(d):
            s += p[i, j] * seen[j]
        reach[i] = s
        variance += seen[i] * s
    return variance


@jit_internal
def _close(
    numbers: Array, seen: Array, nugget: float, d: int, x: Array, p: Array, reach: Array
) -> None:
    """Take the open instant's site into mean and covariance."""
    precision = numbers[PRECISION]
    if precision == 0.0 and numbers[SHIFT] == 0.0:
        return
    variance = _reach(p, seen, d, reach)
    mean = 0.0
    for i in range(d):
        mean += seen[i] * x[i]
    through = 1.0 + precision * (nugget + variance)
    move = (numbers[SHIFT] - precision * mean) / through
    kappa = precision / through
    for i in range(d):
        x[i] += reach[i] * move
        for j in range(d):
            p[i, j] -= kappa * reach[i] * reach[j]


@jit_internal
def _move(form: MarkovForm, k: int, gap: float, x: Array, p: Array, work: Array) -> None:
    """Move mean and covariance of kernel k's states over a gap."""
    d = form.size[k]
    a = work[0]
    b = work[1]
    for i in range(d):
        for j in range(d):
            a[i, j] = 0.0
    a[0, 0] = 1.0
    for m in range(form.mode_kernel.size):
        if form.mode_kernel[m] == k:
            scale = np.exp(form.mode_rate[m, 0] * gap) * gap ** form.mode_power[m]
            real = scale * np.cos(form.mode_rate[m, 1] * gap)
            imaginary = scale * np.sin(form.mode_rate[m, 1] * gap)
            first = form.mode_first[m]
            for i in range(form.mode_size[m]):
                for j in range(form.mode_size[m]):
                    a[first + i, first + j] += (
                        real * form.mode_matrix[m, 0, i, j]
                        - imaginary * form.mode_matrix[m, 1, i, j]
                    )
    for i in range(d):
        s = 0.0
        for q in range(d):
            s += a[i, q] * x[q]
        b[0, i] = s
    for i in range(d):
        x[i] = b[0, i]
        p[i, i] -= 1.0
    for i in range(d):
        for j in range(d):
            s = 0.0
            for q in range(d):
                s += a[i, q] * p[q, j]
            b[i, j] = s
    for i in range(d):
        for j in range(i + 1):
            s = 1.0 if i == j else 0.0
            for q in range(d):
                s += b[i, q] * a[j, q]
            p[i, j] = s
            p[j, i] = s


@jit
def open_instants(
    form: MarkovForm, numbers: Array, times: Array, offset: Array, beside: Array
) -> tuple[Array, Array]:
    """Open an instant at the time of each person's next answer, unless it is open already.

    Parameters
    ----------
    form : MarkovForm
    numbers : array (n_people, n_numbers)
    times : array (n_people,)
        Not before the open instants.
    offset : array (n_people,)
        What the answers see beside the curves.
    beside : array (n_people,)
        Variance of what they see beside that, which nothing is known of.

    Returns
    -------
    opened : array (n_people, n_numbers)
    cavity : array (n_people, n_kernels, 2)
        Mean and variance of what the answers see.
    """
    opened = numbers.copy()
    n_kernels, widest = form.seen.shape
    cavity = np.empty((numbers.shape[0], n_kernels, 2))
    x = np.empty(widest)
    p = np.empty((widest, widest))
    reach = np.empty(widest)
    work = np.empty((2, widest, widest))
    for n in range(numbers.shape[0]):
        gap = times[n] - numbers[n, TIME]
        opened[n, TIME] = times[n]
        first = FIRST
        for k in range(n_kernels):
            d = form.size[k]
            seen = form.seen[k]
            mine = opened[n, first:]
            first += MEAN + d + d * (d + 1) // 2
            _unpack(mine, d, x, p)
            if gap > 0.0:
                _close(mine, seen, form.nugget[k], d, x, p, reach)
                _move(form, k, gap, x, p, work)
                _pack(x, p, d, mine)
                mine[PRECISION] = 0.0
                mine[SHIFT] = 0.0
            variance = _reach(p, seen, d, reach) + form.nugget[k]
            mean = 0.0
            for i in range(d):
                mean += seen[i] * x[i]
            pivot = 1.0 + mine[PRECISION] * variance
            cavity[n, k, 0] = (mean + variance * mine[SHIFT]) / pivot + offset[n]
            cavity[n, k, 1] = variance / pivot + beside[n]
    return opened, cavity


@jit
def match_answers(
    form: MarkovForm,
    opened: Array,
    cavity: Array,
    bracket: Array,
    unit: Array,
    log_likelihood: Array,
    offset: Array,
    beside: Array,
    agree: float,
    ends: float,
) -> bool:
    """Match the tilted moments of one answer of each person, if they are integrated well enough.

    Parameters
    ----------
    form, opened, cavity, offset, beside
        As of `open_instants`; `opened` is changed in place where everything could be integrated.
    bracket : array (n_people, n_kernels, 2)
        Centre and width of the nodes, which are centre + width · unit. Where they do not suffice,
        replaced by those of the tilted distribution.
    unit : array (n_nodes,)
        Even nodes, an odd number of them.
    log_likelihood : array (n_people, n_kernels, n_nodes)
        Of the answers at the nodes.
    agree, ends : float
        Largest relative difference between every other node and all, and largest weight of ends.

    Returns
    -------
    bool
        Whether the answers were taken in.
    """
    n_people, n_kernels, n_nodes = log_likelihood.shape
    step = unit[1] - unit[0]
    tilted = np.empty((n_people, n_kernels, 3))
    done = True
    for n in range(n_people):
        for k in range(n_kernels):
            variance = cavity[n, k, 1]
            centre = bracket[n, k, 0]
            width = bracket[n, k, 1]
            away = centre - cavity[n, k, 0]
            top = -np.inf
            for i in range(n_nodes):
                z = away + width * unit[i]
                log_w = log_likelihood[n, k, i] - 0.5 * z * z / variance
                log_likelihood[n, k, i] = log_w
                top = max(top, log_w)
            if not np.isfinite(top):
                tilted[n, k, 0] = top
                return False
            total = 0.0
            half = 0.0
            first = 0.0
            second = 0.0
            for i in range(n_nodes):
                w = np.exp(log_likelihood[n, k, i] - top)
                log_likelihood[n, k, i] = w
                total += w
                first += w * unit[i]
                second += w * unit[i] * unit[i]
                if i % 2 == 0:
                    half += w
            first /= total
            second = max(second / total - first * first, 0.0)
            edge = log_likelihood[n, k, 0] + log_likelihood[n, k, n_nodes - 1]
            outside = edge > ends * total
            fine = not outside and abs(2.0 * half - total) <= agree * total
            done = done and fine
            tilted[n, k, 0] = (
                top + np.log(total * step * width) - 0.5 * np.log(2.0 * np.pi * variance)
            )
            tilted[n, k, 1] = centre + width * first
            tilted[n, k, 2] = width * width * second
            if fine:  # the bracket of these stays, whoever else needs another round
                continue
            bracket[n, k, 0] = tilted[n, k, 1]
            if outside:
                bracket[n, k, 1] = 2.0 * width
            else:  # a distribution between two nodes has no width of its own yet
                bracket[n, k, 1] = width * max(np.sqrt(second), 0.5 * step)
    if done:
        _take(form, opened, cavity, tilted, offset, beside)
    return done


@jit_internal
def _take(
    form: MarkovForm,
    opened: Array,
    cavity: Array,
    tilted: Array,
    offset: Array,
    beside: Array,
) -> None:
    """Add the sites that give the tilted moments, and reweight the kernels."""
    for n in range(opened.shape[0]):
        first = FIRST
        top = -np.inf
        for k in range(form.size.size):
            mine = opened[n, first:]
            first += MEAN + form.size[k] + form.size[k] * (form.size[k] + 1) // 2
            variance = cavity[n, k, 1]
            precision = 1.0 / tilted[n, k, 2] - 1.0 / variance
            shift = (tilted[n, k, 1] - offset[n]) / tilted[n, k, 2] - (
                cavity[n, k, 0] - offset[n]
            ) / variance
            through = 1.0 + precision * beside[n]
            mine[PRECISION] += precision / through
            mine[SHIFT] += shift / through
            mine[LOG_WEIGHT] += tilted[n, k, 0]
            top = max(top, mine[LOG_WEIGHT])
        total = 0.0
        first = FIRST
        for d in form.size:
            total += np.exp(opened[n, first + LOG_WEIGHT] - top)
            first += MEAN + d + d * (d + 1) // 2
        first = FIRST
        for d in form.size:
            opened[n, first + LOG_WEIGHT] -= top + np.log(total)
            first += MEAN + d + d * (d + 1) // 2


@jit
def curves_at(form: MarkovForm, numbers: Array, times: Array) -> Array:
    """What is known of curves at times that are not before the open instants.

    Parameters
    ----------
    form : MarkovForm
    numbers : array (n_people, n_numbers)
    times : array (n_people,)

    Returns
    -------
    array (n_people, n_kernels, 4)
        Weight of each kernel; mean and variance of the curve about the population's mean; and how
        much of a common, constant error of that mean is left in the ability.
    """
    n_kernels, widest = form.seen.shape
    found = np.empty((numbers.shape[0], n_kernels, 4))
    x = np.empty(widest)
    p = np.empty((widest, widest))
    reach = np.empty(widest)
    work = np.empty((2, widest, widest))
    for n in range(numbers.shape[0]):
        gap = times[n] - numbers[n, TIME]
        first = FIRST
        for k in range(n_kernels):
            d = form.size[k]
            seen = form.seen[k]
            mine = numbers[n, first:]
            first += MEAN + d + d * (d + 1) // 2
            _unpack(mine, d, x, p)
            _close(mine, seen, form.nugget[k], d, x, p, reach)
            if gap > 0.0:
                _move(form, k, gap, x, p, work)
            found[n, k, WEIGHT_NOW] = np.exp(mine[LOG_WEIGHT])
            found[n, k, VARIANCE_NOW] = _reach(p, seen, d, reach)
            mean = 0.0
            for i in range(d):
                mean += seen[i] * x[i]
            found[n, k, MEAN_NOW] = mean
            found[n, k, FOLLOWS_NOW] = reach[0] / seen[0]
    return found
