"""Figures of a fit for papers (matplotlib), each beside the data it draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaesti.core import whole_number
from dynaesti.data import index_of, make_frame
from dynaesti.results.frames import IDENTITY
from dynaesti.results.plotting.people_plots import PeoplePlots
from dynaesti.results.predictions import item_locations

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class FitPlots(PeoplePlots):
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
    ['0', '1', 'ability']
    >>> fit.plot.information_over_time_data(bins=4, points=9).columns
    ['time', 'from', 'until', 'ability', 'information']
    >>> len(fit.plot.wright_data())  # 12 people, 5 items
    17
    >>> list(fit.plot.calibration_data(bins=4).columns)
    ['predicted', 'observed', 'se', 'n']
    """

    def item_data(self, item: Any, points: int = 200) -> Any:
        """Response curves of an item over ability, as `item` draws them.

        Parameters
        ----------
        item : label
        points : int, default 200
            Number of abilities.

        Returns
        -------
        frame
            Columns ability and, by response, the probability of each category (for amounts:
            expected, the mean response).
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
            expected = block.model.expected(u, theta, values)[0]
            return make_frame({"ability": ability, "expected": expected}, fit.frame)
        chances = np.exp(block.model.log_likelihood(u, theta))[0]
        columns = {f"{value:g}": chances[k] for k, value in enumerate(values[0])}
        return make_frame({"ability": ability, **columns}, fit.frame)

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

        return plot_item(self.item_data(item), item, ax)

    def item_fit_data(self, item: Any, bins: int = 8) -> Any:
        """Responses to an item beside what the fit expects, as `item_fit` draws them.

        Each response is set against the ability of its person as known without it.

        Parameters
        ----------
        item : label
        bins : int, default 8
            Number of groups of responses, equally large, by ability.

        Returns
        -------
        frame
            Columns ability (mean of the group), observed and expected (mean responses), se (of
            observed, if the model holds), n.
        """
        fit = self.fit
        number = index_of(fit.responses.items, [item], "item")[0]
        rows = np.flatnonzero(fit.responses.item == number)
        found, ability = fit.leave_one_out
        order = rows[np.argsort(ability[rows], kind="stable")]
        parts = np.array_split(order, min(whole_number(bins, "bins", 1), order.size))
        return make_frame(
            {
                "ability": [float(ability[k].mean()) for k in parts],
                "observed": [float(fit.responses.resp[k].mean()) for k in parts],
                "expected": [float(found.expected[k].mean()) for k in parts],
                "se": [float(np.sqrt(found.variance[k].sum()) / k.size) for k in parts],
                "n": [k.size for k in parts],
            },
            fit.frame,
        )

    def item_fit(self, item: Any, bins: int = 8, ax: Any = None) -> Any:
        """Draw an item's mean response over ability, as observed and as expected.

        Parameters
        ----------
        item : label
        bins : int, default 8
            Number of groups of responses, equally large, by ability.
        ax : matplotlib axes, optional

        Returns
        -------
        matplotlib axes
        """
        from dynaesti.results.plotting.draw import plot_item_fit

        return plot_item_fit(self.item_fit_data(item, bins), item, ax)

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

    def information_over_time_data(self, bins: int = 24, points: int = 61) -> Any:
        """Information of the answers given in each stretch of time, per person answering then.

        Parameters
        ----------
        bins : int, default 24
            Number of stretches of time.
        points : int, default 61
            Number of abilities.

        Returns
        -------
        frame
            Columns time (the middle of a stretch), from, until, ability, information: a row for
            each stretch and ability.
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
        information = asked @ fit.information_at(ability) / active[:, None]
        stretches = {"time": 0.5 * (edges[1:] + edges[:-1]), "from": edges[:-1], "until": edges[1:]}
        return make_frame(
            {
                **{k: np.repeat(fit.from_clock(v), points) for k, v in stretches.items()},
                "ability": np.tile(ability, bins),
                "information": information.ravel(),
            },
            fit.frame,
        )

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

    def wright_data(self) -> Any:
        """Mean ability of each person and location of each item, as `wright` draws them.

        Returns
        -------
        frame
            Columns what ("person" or "item"), label, location; NaN where an item lies beyond the
            scale.
        """
        fit = self.fit
        r = fit.responses
        mean = fit.marginals(r.person, r.clock_times).mean(IDENTITY)
        people = np.bincount(r.person, mean, r.people.size) / np.maximum(np.diff(r.person_start), 1)
        return make_frame(
            {
                "what": ["person"] * people.size + ["item"] * r.items.size,
                "label": [*r.people.tolist(), *r.items.tolist()],
                "location": np.append(people, item_locations(fit.bank, fit.gain, fit.shift)),
            },
            fit.frame,
        )

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
