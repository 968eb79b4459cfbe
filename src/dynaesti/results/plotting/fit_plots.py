"""Figures of a fit for papers (matplotlib), each beside the data it draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaesti.core import whole_number
from dynaesti.data import as_list, index_of, make_frame
from dynaesti.results.frames import IDENTITY
from dynaesti.results.predictions import item_locations

if TYPE_CHECKING:
    from dynaesti.results.fit import Fit


@dataclass(frozen=True)
class FitPlots:
    """Figures of a fit for papers, drawn with matplotlib: ``fit.plot``.

    Every figure has a method ``…_data`` that returns what it draws. Figures take matplotlib axes
    (`ax`, default: new ones) and return them.

    Parameters
    ----------
    fit : Fit

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=12, items=5, per_person=12, seed=1).table
    >>> fit = dy.DynAEsti("2PL").fit(table)
    >>> list(fit.plot.curves_data(["p00"], at=[0, 50]).columns)
    ['id', 'time', 'mean', 'sd', 'lower', 'upper']
    >>> sorted(fit.plot.item_data("i0", points=20))
    ['0', '1', 'ability', 'item']
    >>> fit.plot.information_over_time_data(bins=4, points=9)["information"].shape
    (4, 9)
    >>> fit.plot.wright_data()["people"].shape
    (12,)
    >>> list(fit.plot.calibration_data(bins=4).columns)
    ['predicted', 'observed', 'se', 'n']
    """

    fit: Fit

    def curves_data(self, ids: Any, at: Any = None, level: float = 0.7) -> Any:
        """Abilities of some people over time, as `curves` draws them.

        Parameters
        ----------
        ids : label or sequence of labels
        at : times, optional
            Default: 200 times over the data's span.
        level : float, default 0.7
            Probability of the equal-tailed band.

        Returns
        -------
        frame
            Columns id, time, mean, sd, lower, upper.
        """
        fit = self.fit
        if at is None:
            at = fit.from_clock(np.linspace(*fit.time_range, 200))
        return fit.ability(at, ids, level=level)

    def curves(
        self, ids: Any, at: Any = None, level: float = 0.7, ax: Any = None, *, answers: bool = False
    ) -> Any:
        """Draw ability curves of some people with their bands.

        Parameters
        ----------
        ids : label or sequence of labels
        at : times, optional
            Default: 200 times over the data's span.
        level : float, default 0.7
            Probability of the equal-tailed band.
        ax : matplotlib axes, optional
        answers : bool, default False
            Whether to mark the answers, upwards for a success and downwards for a failure.

        Returns
        -------
        matplotlib axes
        """
        from dynaesti.results.plotting.draw import plot_curves

        return plot_curves(
            self.curves_data(ids, at, level), level, ax, self.answers_data(ids) if answers else None
        )

    def answers_data(self, ids: Any) -> Any:
        """Answers of some people and the ability at their times.

        Parameters
        ----------
        ids : label or sequence of labels

        Returns
        -------
        frame
            Columns id, time, item, resp, mean (of ability), share (of the way from the item's
            lowest to its highest response).
        """
        fit = self.fit
        r = fit.responses
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
                "mean": fit.marginals(r.person[rows], r.clock_times[rows]).mean(IDENTITY),
                "share": (r.resp[rows] - low[r.item[rows]]) / span[r.item[rows]],
            },
            fit.frame,
        )

    def many_data(self, points: int = 60) -> Any:
        """Everyone's ability between their first and last answer, as `many` draws it.

        Parameters
        ----------
        points : int, default 60
            Number of times for each person.

        Returns
        -------
        frame
            Columns id, time, mean.
        """
        fit = self.fit
        fit.require_people()
        first, last = fit.sites.layout.spans
        offsets = first[:, None] + (last - first)[:, None] * np.linspace(0, 1, points)
        person = np.repeat(np.arange(first.size), points)
        labels = fit.responses.people.tolist()
        return make_frame(
            {
                "id": [labels[p] for p in person],
                "time": fit.from_clock(offsets.ravel()),
                "mean": fit.marginals(person, offsets.ravel()).mean(IDENTITY),
            },
            fit.frame,
        )

    def many(self, highlight: Any = (), ax: Any = None) -> Any:
        """Draw all curves in grey, their median over time, and some people in colour.

        As in the paper's golf figure.

        Parameters
        ----------
        highlight : label or sequence of labels, optional
            People to draw in colour.
        ax : matplotlib axes, optional

        Returns
        -------
        matplotlib axes
        """
        from dynaesti.results.plotting.draw import plot_many

        return plot_many(self.many_data(), as_list(highlight), ax)

    def item_data(self, item: Any, points: int = 200) -> dict[str, Any]:
        """Response curves of an item over ability, as `item` draws them.

        Parameters
        ----------
        item : label
        points : int, default 200
            Number of abilities.

        Returns
        -------
        dict
            Arrays ability and, by response, the probability of each category (for amounts:
            expected, the mean response); item, the label.
        """
        fit = self.fit
        number = index_of(fit.responses.items, [item], "item")
        ability = np.linspace(fit.shift - 3.5 * fit.gain, fit.shift + 3.5 * fit.gain, points)
        theta = fit.bank.ability_scale.theta((ability - fit.shift) / fit.gain)
        block_of, index = fit.item_index
        block = fit.bank.blocks[int(block_of[number[0]])]
        u = block.u[index[number]]
        values = block.values[index[number]]
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
        """Draw the response curves of an item.

        Parameters
        ----------
        item : label
        ax : matplotlib axes, optional

        Returns
        -------
        matplotlib axes
        """
        from dynaesti.results.plotting.draw import plot_item

        return plot_item(self.item_data(item), ax)

    def information_data(self, points: int = 200) -> Any:
        """Information of all items over ability, as `information` draws it.

        Parameters
        ----------
        points : int, default 200
            Number of abilities.

        Returns
        -------
        frame
            Columns ability, information, se.
        """
        fit = self.fit
        return fit.test_information(
            np.linspace(fit.shift - 3.5 * fit.gain, fit.shift + 3.5 * fit.gain, points)
        )

    def information(self, ax: Any = None) -> Any:
        """Draw the information of all items together over ability.

        Parameters
        ----------
        ax : matplotlib axes, optional

        Returns
        -------
        matplotlib axes
        """
        from dynaesti.results.plotting.draw import plot_information

        return plot_information(self.information_data(), ax)

    def information_over_time_data(self, bins: int = 24, points: int = 61) -> dict[str, Any]:
        """Information of the answers given in each stretch of time, per person answering then.

        Parameters
        ----------
        bins : int, default 24
            Number of stretches of time.
        points : int, default 61
            Number of abilities.

        Returns
        -------
        dict
            Arrays time (bins,) of the middles, edges (bins + 1,), ability (points,) and information
            (bins, points).
        """
        fit = self.fit
        r = fit.responses
        ability = np.linspace(fit.shift - 3 * fit.gain, fit.shift + 3 * fit.gain, points)
        edges = np.linspace(*fit.time_range, bins + 1)
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
        """Draw where on the scale, and when, the answers distinguish people.

        Parameters
        ----------
        ax : matplotlib axes, optional

        Returns
        -------
        matplotlib axes
        """
        from dynaesti.results.plotting.draw import plot_information_over_time

        return plot_information_over_time(self.information_over_time_data(), ax)

    def wright_data(self) -> dict[str, Any]:
        """Mean ability of each person and location of each item, as `wright` draws them.

        Returns
        -------
        dict
            Arrays people (n_people,) and items (n_items,), NaN where an item lies beyond the scale.
        """
        fit = self.fit
        r = fit.responses
        mean = fit.marginals(r.person, r.clock_times).mean(IDENTITY)
        return {
            "people": np.bincount(r.person, mean, r.people.size)
            / np.maximum(np.diff(r.person_start), 1),
            "items": item_locations(fit.bank, fit.gain, fit.shift),
        }

    def wright(self, ax: Any = None) -> Any:
        """Draw people and items on one scale (a Wright map).

        Parameters
        ----------
        ax : matplotlib axes, optional

        Returns
        -------
        matplotlib axes
        """
        from dynaesti.results.plotting.draw import plot_wright

        return plot_wright(self.wright_data(), ax)

    def calibration_data(self, bins: int = 10) -> Any:
        """Predicted and observed mean responses, each answer predicted without itself.

        Parameters
        ----------
        bins : int, default 10
            Number of groups of equal size.

        Returns
        -------
        frame
            Columns predicted, observed, se, n.
        """
        found = self.fit.leave_one_out[0]
        seen = self.fit.responses.resp
        return calibration_table(found.expected, found.variance, seen, bins, self.fit.frame)

    def calibration(self, ax: Any = None) -> Any:
        """Draw whether predictions are right on average.

        Parameters
        ----------
        ax : matplotlib axes, optional

        Returns
        -------
        matplotlib axes
        """
        from dynaesti.results.plotting.draw import plot_calibration

        return plot_calibration(self.calibration_data(), ax)

    def dif_data(self, by: str, data: Any = None) -> Any:
        """Differential functioning of all items, as `dif` draws it.

        Parameters
        ----------
        by : str
            Column of groups, see `dynaesti.evaluation.dif`.
        data : frame, mapping or path, optional
            Table with the column.

        Returns
        -------
        frame
            That of `dynaesti.evaluation.dif`.
        """
        from dynaesti.results.evaluation.screening.dif import dif

        return dif(self.fit, by, data)

    def dif(self, by: str, data: Any = None, ax: Any = None) -> Any:
        """Draw how much easier items are for one group, the clearest differences first.

        Parameters
        ----------
        by : str
            Column of groups, see `dynaesti.evaluation.dif`.
        data : frame, mapping or path, optional
            Table with the column.
        ax : matplotlib axes, optional

        Returns
        -------
        matplotlib axes
        """
        from dynaesti.results.plotting.draw import plot_item_effects

        return plot_item_effects(self.dif_data(by, data), "effect", ax)

    def drift_data(self, most: int = 30) -> Any:
        """How easy items were over time, as `drift` draws it.

        Parameters
        ----------
        most : int, default 30
            Number of items, those with the clearest drift first.

        Returns
        -------
        frame
            That of `dynaesti.evaluation.drift_map`.
        """
        from dynaesti.results.evaluation.screening.drift import drift_map

        return drift_map(self.fit, most=most)

    def drift(self, most: int = 30, ax: Any = None) -> Any:
        """Draw a map of items over time, coloured by how easy they were.

        Parameters
        ----------
        most : int, default 30
            Number of items, those with the clearest drift first.
        ax : matplotlib axes, optional

        Returns
        -------
        matplotlib axes
        """
        from dynaesti.results.plotting.draw import plot_drift_map

        return plot_drift_map(self.drift_data(most), ax)


def calibration_table(expected: Any, variance: Any, seen: Any, bins: int, kind: str | None) -> Any:
    """Predicted against observed mean responses in groups of equal size, as a frame.

    Parameters
    ----------
    expected, variance : array (n,)
        Predicted mean and variance of each response.
    seen : array (n,)
        The responses.
    bins : int
        Number of groups.
    kind : str or None
        Kind of frame.
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
