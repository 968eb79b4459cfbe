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
    return _finished(ax)


COLOURS = ("#0b5394", "#b45f06", "#38761d", "#990000", "#674ea7", "#7f6000", "#0c8599", "#a64d79")  # apart in lightness too


def plot_curves(frame: Any, level: float, ax: Any = None) -> Any:
    """Abilities over time of several people, each with a band, named at the line's end."""
    import narwhals as nw

    ax = _axes() if ax is None else ax
    table = nw.from_native(frame, eager_only=True)
    ids = np.asarray(table["id"].to_numpy())
    for k, label in enumerate(dict.fromkeys(ids.tolist())):
        mine = np.flatnonzero(ids == label)
        time, mean, lower, upper = (np.asarray(table[name].to_numpy())[mine] for name in ("time", "mean", "lower", "upper"))
        colour = COLOURS[k % len(COLOURS)]
        ax.fill_between(time, lower, upper, color=colour, alpha=0.18, linewidth=0)
        ax.plot(time, mean, color=colour, linewidth=2, label=str(label))
    ax.set_xlabel("time")
    ax.set_ylabel(f"ability ({level:.0%} bands)")
    return _finished(ax)


def plot_item(data: dict[str, Any], ax: Any = None) -> Any:
    """Chances of an item's categories over ability."""
    ax = _axes() if ax is None else ax
    lines = {key: value for key, value in data.items() if key not in ("ability", "item")}
    for k, (name, chance) in enumerate(lines.items()):
        ax.plot(data["ability"], chance, color=COLOURS[k % len(COLOURS)], linewidth=2, label=name)
    ax.set_xlabel("ability")
    ax.set_ylabel("expected response" if "expected" in lines else "chance of each response")
    ax.set_title(f"item {data['item']}")
    if "expected" not in lines:
        ax.set_ylim(0, 1)
        _finished(ax).legend(frameon=False, title="response")
        return ax
    return _finished(ax)


def plot_information(frame: Any, ax: Any = None) -> Any:
    """Test information over ability."""
    import narwhals as nw

    ax = _axes() if ax is None else ax
    table = nw.from_native(frame, eager_only=True)
    ax.plot(table["ability"].to_numpy(), table["information"].to_numpy(), color=INK, linewidth=2, label="all items")
    ax.set_xlabel("ability")
    ax.set_ylabel("information")
    ax.set_ylim(bottom=0)
    return _finished(ax)


def _finished(ax: Any) -> Any:
    """Legend without a frame, no box around the axes."""
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
