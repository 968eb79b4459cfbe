"""Figures of a fit for papers (matplotlib), each with a data twin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaesti.labels import find

if TYPE_CHECKING:
    from dynaesti.results import Fit


@dataclass(frozen=True)
class FitPlots:
    """Figures of a fit; `…_data` gives what they draw."""

    fit: Fit

    def curves_data(self, ids: Any, at: Any = None, level: float = 0.7) -> Any:
        """Abilities over time: the frame that `curves` draws."""
        fit = self.fit
        if at is None:
            low, high = fit.responses.clock_times.min(), fit.responses.clock_times.max()
            at = fit._restored(np.linspace(low, high, 200))
        return fit.ability(at, ids, level=level)

    def curves(self, ids: Any, at: Any = None, level: float = 0.7, ax: Any = None) -> Any:
        """Ability curves of some people with their bands."""
        from dynaesti.plots import plot_curves

        return plot_curves(self.curves_data(ids, at, level), level, ax)

    def item_data(self, item: Any, points: int = 200) -> dict[str, Any]:
        """Chances of each category over ability, as `item` draws them (the mean response for amounts)."""
        fit, number = self.fit, find(self.fit.responses.items, [item], "item")
        ability = np.linspace(fit.shift - 3.5 * fit.gain, fit.shift + 3.5 * fit.gain, points)
        theta = fit.bank.metric.theta((ability - fit.shift) / fit.gain)
        block_of, place = fit.bank.place_of_items()
        block = fit.bank.blocks[int(block_of[number[0]])]
        u, values = block.u[place[number]], block.values[place[number]]
        if not block.model.categorical:
            return {"ability": ability, "expected": block.model.expected(u, theta, values)[0], "item": item}
        chances = np.exp(block.model.rows(u, theta))[0]
        return {"ability": ability, "item": item, **{f"{value:g}": chances[k] for k, value in enumerate(values[0])}}

    def item(self, item: Any, ax: Any = None) -> Any:
        """An item's response curves."""
        from dynaesti.plots import plot_item

        return plot_item(self.item_data(item), ax)

    def information_data(self, points: int = 200) -> Any:
        """Test information over ability: the frame that `information` draws."""
        fit = self.fit
        return fit.test_information(np.linspace(fit.shift - 3.5 * fit.gain, fit.shift + 3.5 * fit.gain, points))

    def information(self, ax: Any = None) -> Any:
        """Information of all items together over ability."""
        from dynaesti.plots import plot_information

        return plot_information(self.information_data(), ax)
