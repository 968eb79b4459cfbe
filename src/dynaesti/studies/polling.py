"""The polling example: one voter a day for 100 days, by CurvFiFE and by mean field."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr
from scipy.stats import norm

from dynaesti.core import Array
from dynaesti.curve_estimator import CurvFiFE
from dynaesti.model import RBF, Bernoulli, Gaussian
from dynaesti.studies.base import BLUE, GREY, ORANGE, Options, Row, Stopwatch, Study, canvas

DAYS = np.arange(1, 101)


def truth() -> Array:
    """True share who would vote for Smith, on each day."""
    x = np.linspace(0, 1, 100)
    return 0.28 * np.cos(6.2 * x + 1.4) + 0.25 * np.sin(9.7 * x) + 0.45


def votes(seed: int) -> Array:
    """Votes of one voter a day, 0 or 1."""
    return (np.random.default_rng(seed).random(100) < truth()).astype(np.float64)


def run(options: Options) -> Study:
    """The paper's figure, and errors and coverage over many seeds."""
    study = Study("polling", "Polling: a curve from 100 votes")
    shown = CurvFiFE().fit(DAYS, Bernoulli(votes(3)))
    caption = (
        "Truth, estimate, 70 % band and the votes; and the same by mean field, whose band all but "
        "vanishes."
    )
    study.figures.append(("polling", caption, _figure(shown)))
    seeds = 20 if options.quick else 200
    found = _over_seeds(seeds)
    exact = CurvFiFE(RBF(20.0)).fit(DAYS, Gaussian(np.sin(DAYS / 15.0), np.full(DAYS.size, 0.3)))
    study.rows = [
        *_accuracy_rows(found, judged=seeds >= 100),
        *_cost_rows(found, int(exact.sweeps), int(shown.sweeps)),
    ]
    study.words = [
        f"Over {seeds} seeds. Bandwidths are averaged over, weighted by their evidence, where the "
        f"paper picks one by cross-validation.",
        "Mean field takes every day's value as independent of the others, given all votes: the "
        "prior's precision then pins each one to its neighbours, and the band is far too narrow, "
        "as the paper says of it. Loopy belief propagation would have to sum the other 99 days out "
        "of one factor by hand, so there is nothing to run.",
        "With Gaussian emissions the first sweep already gives exact regression; a second only "
        "sees that nothing moves.",
    ]
    study.facts = {
        "rmise": found.rmise,
        "cover70": found.cover70,
        "cover95": found.cover95,
        "mean_field_cover70": found.mean_field_cover70,
        "seeds": seeds,
    }
    return study


class _OverSeeds(NamedTuple):
    """Averages over seeds."""

    rmise: float  # root mean integrated squared error of the median
    cover70: float  # share of days on which the 70 % band holds the truth
    cover95: float
    mean_field_cover70: float  # over the first 20 seeds
    cpu: float  # median seconds of a fit


def _over_seeds(seeds: int) -> _OverSeeds:
    """Fit the votes of each seed, and compare with the truth."""
    errors: list[float] = []
    spent: list[float] = []
    cover70: list[float] = []
    cover95: list[float] = []
    mean_field_cover: list[float] = []
    for seed in range(seeds):
        y = votes(seed)
        clock = Stopwatch()
        curve = CurvFiFE().fit(DAYS, Bernoulli(y))
        spent.append(clock.spent())
        errors.append(float(np.sqrt(np.mean((curve.median(DAYS) - truth()) ** 2))))
        cover70.append(_coverage(*curve.interval(DAYS, 0.7)))
        cover95.append(_coverage(*curve.interval(DAYS, 0.95)))
        if seed < 20:
            mean_field_cover.append(_coverage(*mean_field(y)[1:]))
    return _OverSeeds(
        float(np.mean(errors)),
        float(np.mean(cover70)),
        float(np.mean(cover95)),
        float(np.mean(mean_field_cover)),
        float(np.median(spent)),
    )


def _coverage(low: Array, high: Array) -> float:
    """Share of days on which a band holds the truth."""
    return float(np.mean((low < truth()) & (truth() < high)))


def _accuracy_rows(found: _OverSeeds, judged: bool) -> list[Row]:
    """Error and coverage; few seeds are not judged."""
    return [
        Row(
            "RMISE of the curve, mean over seeds",
            "not reported",
            f"{found.rmise:.4f}",
            "≤ 0.096",
            found.rmise <= 0.096 if judged else None,
        ),
        Row(
            "cover of the 70 % band",
            "not reported",
            f"{found.cover70:.3f}",
            "0.68 to 0.76",
            0.68 <= found.cover70 <= 0.76 if judged else None,
        ),
        Row(
            "cover of the 95 % band",
            "not reported",
            f"{found.cover95:.3f}",
            "0.935 to 0.975",
            0.935 <= found.cover95 <= 0.975 if judged else None,
        ),
        Row(
            "cover of the 70 % band by mean field",
            "“fails”",
            f"{found.mean_field_cover70:.3f}",
            "0.70",
        ),
    ]


def _cost_rows(found: _OverSeeds, gaussian_sweeps: int, vote_sweeps: int) -> list[Row]:
    """Sweeps and CPU time."""
    return [
        Row(
            "sweeps for Gaussian emissions",
            "1",
            str(gaussian_sweeps),
            "1",
            gaussian_sweeps <= 2,
        ),
        Row("sweeps here (median prior)", "about 15", str(vote_sweeps)),
        Row(
            "CPU of a fit, bandwidths averaged over",
            "not reported",
            f"{1e3 * found.cpu:.0f} ms",
            "≤ 15 ms",
        ),
    ]


def mean_field(y: Array, bandwidth: float = 20.0, level: float = 0.7) -> tuple[Array, Array, Array]:
    """Median and band of the best fully factorised Gaussian over the days.

    Best in Kullback–Leibler divergence. Returns (median, lower, upper), arrays (100,).
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
    """The curve and mean field side by side."""
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
