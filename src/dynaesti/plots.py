"""Figures from arrays, with matplotlib."""

from typing import Any

import numpy as np

from dynaesti.errors import MissingExtraError

INK, BAND, POINT = "#0b5394", "#9fc5e8", "#444444"  # distinct in grey and to the colour-blind


def plot_curve(data: dict[str, Any], level: float, ax: Any = None) -> Any:
    """A curve's median, its band and its emissions; yes/no answers stand at the edges as ticks."""
    if ax is None:
        ax = _axes()
    ax.fill_between(data["time"], data["lower"], data["upper"], color=BAND, alpha=0.6, linewidth=0, label=f"{level:.0%} band")
    ax.plot(data["time"], data["median"], color=INK, linewidth=2, label="median")
    seen = data["emission"]
    if seen is not None:
        votes = np.isin(seen, (0, 1)).all() and data["link"] in ("probit", "logit")
        marker = {"marker": "|", "markersize": 7} if votes else {"marker": "o", "markersize": 3.5, "markeredgewidth": 0}
        ax.plot(data["emission_time"], seen, linestyle="none", color=POINT, alpha=0.6, label="emissions", **marker)
    ax.set_xlabel("time")
    ax.set_ylabel("curve" if data["link"] == "identity" else f"curve ({data['link']} link)")
    ax.margins(x=0.01)
    ax.legend(frameon=False)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax


def _axes() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingExtraError("plotting needs matplotlib: pip install 'dynaesti[plot]'") from error
    return plt.subplots(figsize=(7.2, 4.2), layout="constrained")[1]
