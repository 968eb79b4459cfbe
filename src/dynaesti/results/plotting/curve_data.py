"""What the figure of a curve draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynaesti.results.frames import band_and_median

if TYPE_CHECKING:
    from dynaesti.results.curve import Curve


def curve_plot_data(curve: Curve, t: Any, level: float) -> dict[str, Any]:
    """Median and band at the times, and the emissions where they have values to show."""
    lower, median, upper = curve.quantile(t, band_and_median(level))
    obs = curve.observations
    emission = obs.emissions.plot_values() if curve.shown_link is None else None
    return {
        "time": np.asarray(t),
        "median": median,
        "lower": lower,
        "upper": upper,
        "emission_time": None if emission is None else obs.axis.restore(obs.offsets),
        "emission": emission,
        "link": curve.link.name,
    }
