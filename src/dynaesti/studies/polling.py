"""The polling example: one voter a day for 100 days.

The curve, its band, coverage over seeds, and what mean field makes of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr
from scipy.stats import norm

from dynaesti.core import Array
from dynaesti.curve_estimator import CurvFiFE
from dynaesti.model import RBF, Bernoulli, Gaussian
from dynaesti.studies.base import BLUE, GREY, ORANGE, Options, Row, Stopwatch, Study, canvas

DAYS = np.arange(1, 101)


def truth() -> Array:
    """Share who would vote for Smith."""
    x = np.linspace(0, 1, 100)
    return 0.28 * np.cos(6.2 * x + 1.4) + 0.25 * np.sin(9.7 * x) + 0.45


def votes(seed: int) -> Array:
    """One voter a day."""
    return (np.random.default_rng(seed).random(100) < truth()).astype(np.float64)


def run(options: Options) -> Study:
    """The figure and the study."""
    study = Study("polling", "Polling: a curve from 100 votes")
    shown = CurvFiFE().fit(DAYS, Bernoulli(votes(3)))
    study.figures.append(
        (
            "polling",
            "Truth, estimate, 70 % band and the votes; and the same by mean field, whose band all "
            "but vanishes.",
            _figure(shown),
        )
    )
    seeds = 20 if options.quick else 200
    errors: list[float] = []
    spent: list[float] = []
    cover: list[float] = []
    wide: list[float] = []
    field_cover: list[float] = []
    for seed in range(seeds):
        y = votes(seed)
        clock = Stopwatch()
        curve = CurvFiFE().fit(DAYS, Bernoulli(y))
        spent.append(clock.spent())
        errors.append(float(np.sqrt(np.mean((curve.median(DAYS) - truth()) ** 2))))
        for level, out in ((0.7, cover), (0.95, wide)):
            low, high = curve.interval(DAYS, level)
            out.append(float(np.mean((low < truth()) & (truth() < high))))
        if seed < 20:
            low, high = mean_field(y)[1:]
            field_cover.append(float(np.mean((low < truth()) & (truth() < high))))
    rmise = float(np.mean(errors))
    seventy = float(np.mean(cover))
    ninety = float(np.mean(wide))
    exact = CurvFiFE(RBF(20.0)).fit(DAYS, Gaussian(np.sin(DAYS / 15.0), np.full(DAYS.size, 0.3)))
    enough = seeds >= 100
    study.rows = [
        Row(
            "RMISE of the curve, mean over seeds",
            "not told",
            f"{rmise:.4f}",
            "≤ 0.096",
            rmise <= 0.096 if enough else None,
        ),
        Row(
            "cover of the 70 % band",
            "not told",
            f"{seventy:.3f}",
            "0.68 to 0.76",
            0.68 <= seventy <= 0.76 if enough else None,
        ),
        Row(
            "cover of the 95 % band",
            "not told",
            f"{ninety:.3f}",
            "0.935 to 0.975",
            0.935 <= ninety <= 0.975 if enough else None,
        ),
        Row(
            "cover of the 70 % band by mean field", "“fails”", f"{np.mean(field_cover):.3f}", "0.70"
        ),
        Row(
            "sweeps for Gaussian emissions",
            "1",
            str(int(exact.sweeps)),
            "1",
            int(exact.sweeps) <= 2,
        ),
        Row("sweeps here (median prior)", "about 15", str(int(shown.sweeps))),
        Row(
            "CPU of a fit, bandwidths averaged over",
            "not told",
            f"{1e3 * np.median(spent):.0f} ms",
            "≤ 15 ms",
        ),
    ]
    study.words = [
        f"Over {seeds} seeds. Bandwidths are averaged over, weighted by their evidence, where the "
        f"paper picks one by cross-validation.",
        "Mean field takes every day's value as independent of the others, given all votes: the "
        "prior's precision then pins each one to its "
        "neighbours, and the band is far too narrow, as the paper says of it. Loopy belief "
        "propagation would have to sum the other 99 days "
        "out of one factor by hand, so there is nothing to run.",
        "With Gaussian emissions the first sweep already gives exact regression; a second only "
        "sees that nothing moves.",
    ]
    study.facts = {
        "rmise": rmise,
        "cover70": seventy,
        "cover95": ninety,
        "mean_field_cover70": float(np.mean(field_cover)),
        "seeds": seeds,
    }
    return study


def mean_field(y: Array, bandwidth: float = 20.0, level: float = 0.7) -> tuple[Array, Array, Array]:
    """(median, lower, upper) of a fully factorised Gaussian over the days, the best in
    Kullback–Leibler divergence.
    """
    kernel = np.exp(-0.5 * ((DAYS[:, None] - DAYS) / bandwidth) ** 2) + 1e-4 * np.eye(DAYS.size)
    precision = np.linalg.inv(kernel)
    nodes, weights = np.polynomial.hermite_e.hermegauss(21)
    weights = weights / weights.sum()
    sign = np.where(y > 0, 1.0, -1.0)
    m = np.zeros(y.size)
    v = 1.0 / np.diag(precision)
    for _ in range(200):  # Newton in the means, fixed points in the variances
        x = m[:, None] + np.sqrt(v)[:, None] * nodes
        ratio = np.exp(norm.logpdf(x) - log_ndtr(sign[:, None] * x))
        slope = (sign[:, None] * ratio) @ weights
        curve = (ratio * (ratio + sign[:, None] * x)) @ weights
        step = np.linalg.solve(precision + np.diag(curve), slope - precision @ m)
        m = m + step
        v = 1.0 / (np.diag(precision) + curve)
        if np.abs(step).max() < 1e-9:
            break
    z = norm.ppf(0.5 + level / 2)
    return ndtr(m), ndtr(m - z * np.sqrt(v)), ndtr(m + z * np.sqrt(v))


def _figure(curve: Any) -> Any:
    figure, axes = canvas(1, 2, 11.0, 4.0)
    low, high = curve.interval(DAYS, 0.7)
    y = votes(3)
    parts = (
        (axes[0], curve.median(DAYS), low, high, "CurvFiFE"),
        (axes[1], *mean_field(y), "mean field"),
    )
    for ax, middle, lower, upper, name in parts:
        ax.fill_between(DAYS, lower, upper, color=BLUE, alpha=0.25, linewidth=0, label="70 % band")
        ax.plot(DAYS, middle, color=BLUE, linewidth=2, label="estimate")
        ax.plot(DAYS, truth(), color=ORANGE, linestyle="--", label="truth")
        ax.plot(DAYS, y, "|", color=GREY, markersize=7, label="votes")
        ax.set(
            title=name, xlabel="day", ylabel="share who would vote for Smith", ylim=(-0.05, 1.05)
        )
    axes[0].legend(frameon=False, ncols=2, loc="upper center", fontsize=9)
    return figure
