"""What the figure of a curve draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynaesti.data import frame_kind, make_frame
from dynaesti.results.frames import band_and_median
from dynaesti.tables import as_frame

if TYPE_CHECKING:
    from dynaesti.results.curve import Curve


def curve_plot_data(curve: Curve, t: Any, level: float) -> Any:
    """Frame of the median and the band at the times."""
    lower, median, upper = curve.quantile(t, band_and_median(level))
    columns = {"time": np.asarray(t), "median": median, "lower": lower, "upper": upper}
    return make_frame(columns, frame_kind(t) or curve.frame)


def observed_data(curve: Curve) -> Any:
    """Frame of the emissions that have values to show; without rows where they have none."""
    obs = curve.observations
    values = obs.emissions.plot_values() if curve.shown_link is None else None
    times = obs.axis.restore(obs.offsets)
    if values is None:
        values, times = np.zeros(0), times[:0]
    return make_frame({"time": times, "value": np.asarray(values)}, curve.frame)


def influence_data(curve: Curve) -> Any:
    """Frame of what each emission does to the curve, and the curve's median there."""
    found = as_frame(curve.influence())
    columns = {name: found[name].to_numpy() for name in found.columns}
    return make_frame({**columns, "median": curve.median(columns["time"])}, curve.frame)
