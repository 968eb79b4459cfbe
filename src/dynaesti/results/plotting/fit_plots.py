"""Figures of a fit for papers (matplotlib), each with a data twin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaesti.core import whole_number
from dynaesti.data import as_list, index_of, make_frame
from dynaesti.model import BUILT_IN
from dynaesti.results.predictions import item_locations

if TYPE_CHECKING:
    from dynaesti.results.fit import Fit


@dataclass(frozen=True)
class FitPlots:
    """Figures of a fit; `…_data` gives what they draw."""

    fit: Fit

    def curves_data(self, ids: Any, at: Any = None, level: float = 0.7) -> Any:
        """Abilities over time: the frame that `curves` draws."""
        fit = self.fit
        if at is None:
            low = fit.responses.clock_times.min()
            high = fit.responses.clock_times.max()
            at = fit.from_clock(np.linspace(low, high, 200))
        return fit.ability(at, ids, level=level)

    def curves(
        self, ids: Any, at: Any = None, level: float = 0.7, ax: Any = None, *, answers: bool = False
    ) -> Any:
        """Ability curves of some people with their bands.

        `answers` marks where they answered, up for a success and down for none.
        """
        from dynaesti.results.plotting.draw import plot_curves

        return plot_curves(
            self.curves_data(ids, at, level), level, ax, self.answers_data(ids) if answers else None
        )

    def answers_data(self, ids: Any) -> Any:
        """The answers of some people and the ability there.

        A frame id, time, item, resp, mean, share (of the way to the best response).
        """
        fit = self.fit
        r = self.fit.responses
        people = index_of(r.people, as_list(ids), "ids")
        rows = np.concatenate([np.arange(r.person_start[p], r.person_start[p + 1]) for p in people])
        low = np.full(r.items.size, np.inf)
        high = np.full(r.items.size, -np.inf)
        np.minimum.at(low, r.item, r.resp)
        np.maximum.at(high, r.item, r.resp)
        span = np.maximum(high - low, 1e-12)
        labels = r.people.tolist()
        items = r.items.tolist()
        return make_frame(
            {
                "id": [labels[p] for p in r.person[rows]],
                "time": fit.from_clock(r.clock_times[rows]),
                "item": [items[i] for i in r.item[rows]],
                "resp": r.resp[rows],
                "mean": fit.marginals(r.person[rows], r.clock_times[rows]).mean(
                    BUILT_IN["identity"]
                ),
                "share": (r.resp[rows] - low[r.item[rows]]) / span[r.item[rows]],
            },
            fit.frame,
        )

    def many_data(self, points: int = 60) -> Any:
        """Everyone's curve between their first and last answer.

        The frame that `many` draws (id, time, mean).
        """
        fit = self.fit
        first, last = fit.sites.layout.spans
        offsets = first[:, None] + (last - first)[:, None] * np.linspace(0, 1, points)
        person = np.repeat(np.arange(first.size), points)
        labels = fit.responses.people.tolist()
        return make_frame(
            {
                "id": [labels[p] for p in person],
                "time": fit.from_clock(offsets.ravel()),
                "mean": fit.marginals(person, offsets.ravel()).mean(BUILT_IN["identity"]),
            },
            fit.frame,
        )

    def many(self, highlight: Any = (), ax: Any = None) -> Any:
        """All curves at once in grey, their median over time, and some people highlighted.

        The paper's golf figure.
        """
        from dynaesti.results.plotting.draw import plot_many

        return plot_many(self.many_data(), as_list(highlight), ax)

    def item_data(self, item: Any, points: int = 200) -> dict[str, Any]:
        """Chances of each category over ability, as `item` draws them (the mean response for
        amounts).
        """
        fit = self.fit
        number = index_of(self.fit.responses.items, [item], "item")
        ability = np.linspace(fit.shift - 3.5 * fit.gain, fit.shift + 3.5 * fit.gain, points)
        theta = fit.bank.ability_scale.theta((ability - fit.shift) / fit.gain)
        block_of, place = fit.bank.index_in_blocks()
        block = fit.bank.blocks[int(block_of[number[0]])]
        u = block.u[place[number]]
        values = block.values[place[number]]
        if not block.model.categorical:
            return {
                "ability": ability,
                "expected": block.model.expected(u, theta, values)[0],
                "item": item,
            }
        chances = np.exp(block.model.log_likelihood(u, theta))[0]
        return {
            "ability": ability,
            "item": item,
            **{f"{value:g}": chances[k] for k, value in enumerate(values[0])},
        }

    def item(self, item: Any, ax: Any = None) -> Any:
        """An item's response curves."""
        from dynaesti.results.plotting.draw import plot_item

        return plot_item(self.item_data(item), ax)

    def information_data(self, points: int = 200) -> Any:
        """Test information over ability: the frame that `information` draws."""
        fit = self.fit
        return fit.test_information(
            np.linspace(fit.shift - 3.5 * fit.gain, fit.shift + 3.5 * fit.gain, points)
        )

    def information(self, ax: Any = None) -> Any:
        """Information of all items together over ability."""
        from dynaesti.results.plotting.draw import plot_information

        return plot_information(self.information_data(), ax)

    def information_over_time_data(self, bins: int = 24, points: int = 61) -> dict[str, Any]:
        """Information that the answers of each stretch of time hold, per person answering then,
        over ability: (stretches, abilities).
        """
        fit = self.fit
        r = self.fit.responses
        ability = np.linspace(fit.shift - 3 * fit.gain, fit.shift + 3 * fit.gain, points)
        edges = np.linspace(r.clock_times.min(), r.clock_times.max(), bins + 1)
        stretch = np.clip(np.searchsorted(edges, r.clock_times, side="right") - 1, 0, bins - 1)
        asked = np.zeros((bins, r.items.size))
        np.add.at(asked, (stretch, r.item), 1.0)
        pairs = np.unique(stretch * r.people.size + r.person) // r.people.size
        active = np.maximum(np.bincount(pairs, minlength=bins), 1)
        return {
            "time": fit.from_clock(0.5 * (edges[1:] + edges[:-1])),
            "edges": fit.from_clock(edges),
            "ability": ability,
            "information": asked @ fit.information_at(ability) / active[:, None],
        }

    def information_over_time(self, ax: Any = None) -> Any:
        """Where on the scale, and when, the answers tell people apart."""
        from dynaesti.results.plotting.draw import plot_information_over_time

        return plot_information_over_time(self.information_over_time_data(), ax)

    def wright_data(self) -> dict[str, Any]:
        """Average ability of each person and location of each item (NaN where it lies beyond the
        scale), as `wright` draws them.
        """
        fit = self.fit
        r = self.fit.responses
        mean = fit.marginals(r.person, r.clock_times).mean(BUILT_IN["identity"])
        return {
            "people": np.bincount(r.person, mean, r.people.size)
            / np.maximum(np.diff(r.person_start), 1),
            "items": item_locations(fit.bank, fit.gain, fit.shift),
        }

    def wright(self, ax: Any = None) -> Any:
        """People and items on one scale."""
        from dynaesti.results.plotting.draw import plot_wright

        return plot_wright(self.wright_data(), ax)

    def calibration_data(self, bins: int = 10) -> Any:
        """Predicted and observed mean responses, each answer predicted without itself.

        A frame predicted, observed, se, n.
        """
        found = self.fit.leave_one_out[0]
        seen = self.fit.responses.resp
        return calibration_table(found.expected, found.variance, seen, bins, self.fit.frame)

    def calibration(self, ax: Any = None) -> Any:
        """Whether predictions are right on average."""
        from dynaesti.results.plotting.draw import plot_calibration

        return plot_calibration(self.calibration_data(), ax)


def calibration_table(expected: Any, variance: Any, seen: Any, bins: int, kind: str | None) -> Any:
    """Predicted against observed mean responses in bins of equal size, with a standard error.

    A frame.
    """
    order = np.argsort(expected, kind="stable")
    parts = np.array_split(order, min(whole_number(bins, "bins", 1), order.size))
    return make_frame(
        {
            "predicted": [float(expected[k].mean()) for k in parts],
            "observed": [float(seen[k].mean()) for k in parts],
            "se": [float(np.sqrt(variance[k].mean() / k.size)) for k in parts],
            "n": [k.size for k in parts],
        },
        kind,
    )
