"""Figures of the people of a fit over time, each beside the data it draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaesti.data import as_list, index_of, make_frame
from dynaesti.results.frames import IDENTITY, band
from dynaesti.results.item_checks import origin_and_width
from dynaesti.tables import as_frame

if TYPE_CHECKING:
    from dynaesti.results.fit import Fit

FAN = (0.5, 0.8, 0.95)  # probabilities of a fan's bands
FILTERED_TIMES = 80  # each has a curve of its own


@dataclass(frozen=True)
class PeoplePlots:
    """Figures of people and of the population over time; `FitPlots` has them all.

    Parameters
    ----------
    fit : Fit
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
        from dynaesti.results.plotting.draw_people import plot_curves

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
            worst to its best response).
        """
        fit = self.fit
        r = fit.responses
        people = index_of(r.people, as_list(ids), "ids")
        rows = np.concatenate([np.arange(r.person_start[p], r.person_start[p + 1]) for p in people])
        origin, width = origin_and_width(fit.bank)
        labels = r.people.tolist()
        items = r.items.tolist()
        return make_frame(
            {
                "id": [labels[p] for p in r.person[rows]],
                "time": fit.from_clock(r.clock_times[rows]),
                "item": [items[i] for i in r.item[rows]],
                "resp": r.resp[rows],
                "mean": fit.marginals(r.person[rows], r.clock_times[rows]).mean(IDENTITY),
                "share": (r.resp[rows] - origin[r.item[rows]]) / width[r.item[rows]],
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
        from dynaesti.results.plotting.draw_people import plot_many

        return plot_many(self.many_data(), as_list(highlight), ax)

    def cohort_data(self, at: Any = None, level: float = 0.7) -> Any:
        """The population's mean over time, as `cohort` draws it.

        Parameters
        ----------
        at : times, optional
            Default: 50 times over all the data.
        level : float, default 0.7
            Probability of the band, which is that of the mean itself.

        Returns
        -------
        frame
            That of `Fit.cohort`.
        """
        return self.fit.cohort(at, level=level)

    def cohort(self, at: Any = None, level: float = 0.7, ax: Any = None) -> Any:
        """Draw the population's mean over time with its band, or that of each group.

        Parameters
        ----------
        at : times, optional
            Default: 50 times over all the data.
        level : float, default 0.7
            Probability of the band, which is that of the mean itself.
        ax : matplotlib axes, optional

        Returns
        -------
        matplotlib axes
        """
        from dynaesti.results.plotting.draw_people import plot_cohort

        return plot_cohort(self.cohort_data(at, level), level, ax)

    def fan_data(self, id: Any, at: Any = None, levels: Any = FAN) -> Any:
        """A person's ability in bands of several probabilities, as `fan` draws them.

        Parameters
        ----------
        id : label
        at : times, optional
            Default: 200 times over the data's span.
        levels : sequence of float, default (0.5, 0.8, 0.95)
            Probabilities of the equal-tailed bands.

        Returns
        -------
        frame
            Columns id, time, median, level, lower, upper: a row for each time and level.
        """
        fit = self.fit
        times = fit.from_clock(np.linspace(*fit.time_range, 200)) if at is None else at
        ends = [band(level) for level in levels]
        wanted = sorted({0.5, *(float(q) for pair in ends for q in pair)})
        found = as_frame(fit.ability(times, [id], quantiles=wanted))
        n, k = len(found), len(ends)
        column = {q: np.asarray(found[f"q{q:g}"].to_numpy()) for q in wanted}
        return make_frame(
            {
                "id": [id] * (n * k),
                "time": np.tile(found["time"].to_numpy(), k),
                "median": np.tile(column[0.5], k),
                "level": np.repeat(np.array(levels, dtype=np.float64), n),
                "lower": np.concatenate([column[float(low)] for low, _ in ends]),
                "upper": np.concatenate([column[float(high)] for _, high in ends]),
            },
            fit.frame,
        )

    def fan(self, id: Any, at: Any = None, levels: Any = FAN, ax: Any = None) -> Any:
        """Draw a person's ability as a fan: bands of several probabilities, the likeliest darkest.

        Parameters
        ----------
        id : label
        at : times, optional
            Default: 200 times over the data's span; times beyond it show how the fan opens.
        levels : sequence of float, default (0.5, 0.8, 0.95)
            Probabilities of the equal-tailed bands.
        ax : matplotlib axes, optional

        Returns
        -------
        matplotlib axes
        """
        from dynaesti.results.plotting.draw_people import plot_fan

        return plot_fan(self.fan_data(id, at, levels), ax)

    def filtered_data(self, id: Any, at: Any = None, level: float = 0.7) -> Any:
        """A person's filtered and smoothed ability, as `filtered` draws them.

        Parameters
        ----------
        id : label
        at : times, optional
            Default: 80 times from the person's first answer to the last.
        level : float, default 0.7
            Probability of the equal-tailed bands.

        Returns
        -------
        frame
            Columns id, time, smoothed, smoothed_lower, smoothed_upper (given all answers), and
            filtered, filtered_lower, filtered_upper (given those until then).
        """
        fit = self.fit
        if at is None:
            person = int(index_of(fit.responses.people, [id], "id")[0])
            first, last = fit.sites.layout.spans
            at = fit.from_clock(np.linspace(first[person], last[person], FILTERED_TIMES))
        columns: dict[str, Any] = {}
        for kind in ("smoothed", "filtered"):
            found = as_frame(fit.ability(at, [id], level=level, filtered=kind == "filtered"))
            columns |= {
                "id": found["id"].to_numpy(),
                "time": found["time"].to_numpy(),
                kind: found["mean"].to_numpy(),
                f"{kind}_lower": found["lower"].to_numpy(),
                f"{kind}_upper": found["upper"].to_numpy(),
            }
        return make_frame(columns, fit.frame)

    def filtered(self, id: Any, at: Any = None, level: float = 0.7, ax: Any = None) -> Any:
        """Draw what was known of a person at each time beside what is known now.

        Parameters
        ----------
        id : label
        at : times, optional
            Default: 80 times from the person's first answer to the last.
        level : float, default 0.7
            Probability of the equal-tailed bands.
        ax : matplotlib axes, optional

        Returns
        -------
        matplotlib axes
        """
        from dynaesti.results.plotting.draw_people import plot_filtered

        return plot_filtered(self.filtered_data(id, at, level), level, ax)
