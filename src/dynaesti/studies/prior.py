"""The Gaussian-process prior: curves drawn from it, and conditioned on points."""

from __future__ import annotations

import numpy as np

from dynaesti.curve_estimator import CurvFiFE
from dynaesti.model import RBF, Gaussian, curves
from dynaesti.studies.base import BLUE, GREY, ORANGE, Options, Row, Study, canvas

BANDWIDTH = 0.15
POINTS = (np.array([0.1, 0.35, 0.6, 0.9]), np.array([-0.8, 0.9, 0.2, -0.5]))


def run(options: Options) -> Study:  # noqa: ARG001
    """The paper's figure, and a check that the conditioned curve is exact."""
    study = Study("prior", "The prior: curves before and after a few points")
    t = np.linspace(0, 1, 201)
    curve = CurvFiFE(RBF(BANDWIDTH, amplitude=1.0, nugget=0.0), mean=0.0).fit(
        POINTS[0], Gaussian(POINTS[1], np.full(4, 1e-3))
    )
    figure, axes = canvas(1, 2, 11.0, 4.0)
    before = curves(t, BANDWIDTH, 12, seed=4)
    after = curve.sample(t, 12, seed=4)
    low, high = curve.interval(t, 0.6827)
    for ax, draws, mean, lower, upper, name in (
        (axes[0], before, np.zeros(t.size), -np.ones(t.size), np.ones(t.size), "prior"),
        (axes[1], after, curve.mean(t), low, high, "given the points"),
    ):
        ax.plot(t, draws.T, color=GREY, linewidth=0.8, alpha=0.8)
        ax.fill_between(t, lower, upper, color=BLUE, alpha=0.2, linewidth=0, label="± 1 sd")
        ax.plot(t, mean, color="black", linewidth=2.5, label="mean")
        ax.set(title=name, xlabel="time", ylabel="curve", ylim=(-3, 3))
    axes[1].plot(*POINTS, "o", color=ORANGE, label="points")
    axes[1].legend(frameon=False, loc="upper right")
    caption = (
        "Curves drawn from the prior (bandwidth 0.15), and from the posterior that goes through "
        "four points."
    )
    study.figures.append(("prior", caption, figure))
    k = np.exp(-0.5 * ((POINTS[0][:, None] - POINTS[0]) / BANDWIDTH) ** 2) + 1e-6 * np.eye(4)
    cross = np.exp(-0.5 * ((t[:, None] - POINTS[0]) / BANDWIDTH) ** 2)
    off = float(np.abs(cross @ np.linalg.solve(k, POINTS[1]) - curve.mean(t)).max())
    study.rows = [
        Row(
            "largest distance to kriging's closed form",
            "exact",
            f"{off:.1e}",
            "≤ 1e-4",
            off <= 1e-4,
        )
    ]
    study.facts = {"off": off}
    return study
