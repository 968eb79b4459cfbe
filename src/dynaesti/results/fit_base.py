"""What a fit knows of its items and its population, wherever the people are kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaesti.core import Array, Ints, as_vector
from dynaesti.data import (
    Labels,
    Responses,
    as_list,
    count_noun,
    frame_kind,
    index_of,
    make_frame,
    split_items,
)
from dynaesti.errors import InputError, MissingColumnError, option
from dynaesti.estimation import (
    ItemDrift,
    ItemNodes,
    IterationRecord,
    PriorMixture,
    ResponseCoding,
    Scale,
    ability_grid,
    reported_scale,
    tabulate_items,
)
from dynaesti.inference import LogLikelihoodTable
from dynaesti.model import BandwidthKernel, ItemBank, Kernel, Level
from dynaesti.results.clock import covariate_kinds, from_clock, to_clock
from dynaesti.results.cohort import (
    cohort_columns,
    cohort_sentences,
    group_differences,
    growth_columns,
)
from dynaesti.results.effects import effect_columns
from dynaesti.results.evaluation.screening.screen import Screener
from dynaesti.results.fit_summary import fit_summary
from dynaesti.results.item_checks import ItemChecks, item_checks
from dynaesti.results.item_table import covariance_columns, interval_columns, item_columns
from dynaesti.results.predictions import item_information
from dynaesti.results.scoring.make import scorer_of
from dynaesti.results.scoring.scorer import Scorer
from dynaesti.tables import Summary

if TYPE_CHECKING:
    from dynaesti.results.fit import Fit

VAGUE = 0.9  # posterior sd over prior sd above which answers say nothing of a parameter
SHOWN_FLAGS = 5  # flagged items that a summary names


class FitBase(ABC):
    """Items and population of a fit, wherever its people are kept.

    Base of `Fit` and `ShardedFit`. Abilities are on the reported scale: ability = shift + gain · z
    with z of unit variance in the prior.

    Attributes
    ----------
    bank : ItemBank
        All items.
    priors : PriorMixture
        Prior of everyone's curve: kernels with their weights, and the cohort.
    covariance : tuple of array (n_items, n_parameters, n_parameters) or None
        Covariance of the items' unconstrained parameters, one array for each block of the bank.
    scale_covariance : array (2, 2) or None
        Covariance of the abilities' zero and unit.
    trace : tuple of IterationRecord
        One record for each iteration.
    converged : bool
        Whether EM converged.
    coding : ResponseCoding
        Categories of the responses.
    options : mapping of str to Any
        Options of the estimator.
    max_abs_ability : float
        Largest absolute ability of anyone, in standard deviations.
    item_nodes : tuple of ItemNodes or None
        Weighted points of the items' parameters, to predict with where items have few responses.
    item_drift : ItemDrift or None
        How items become easier or harder in the course of time, to predict with.
    """

    bank: ItemBank
    priors: PriorMixture
    covariance: tuple[Array, ...] | None
    scale_covariance: Array | None
    trace: tuple[IterationRecord, ...]
    converged: bool
    coding: ResponseCoding
    options: Mapping[str, Any]
    max_abs_ability: float
    item_nodes: tuple[ItemNodes, ...] | None
    item_drift: ItemDrift | None

    @property
    @abstractmethod
    def kernels(self) -> tuple[Kernel, ...]:
        """Kernels that the population mixes."""

    @property
    @abstractmethod
    def population(self) -> Array:
        """Weight of each kernel in the population, (n_kernels,)."""

    @property
    @abstractmethod
    def item_labels(self) -> Labels:
        """Labels of the items, (n_items,)."""

    @property
    @abstractmethod
    def response_template(self) -> Responses:
        """Responses, or none, with whose columns and clock others are read."""

    @property
    @abstractmethod
    def time_range(self) -> tuple[float, float]:
        """First and last time of the responses, on the fit's clock."""

    @property
    @abstractmethod
    def responses_per_item(self) -> Ints:
        """Number of responses to each item, (n_items,)."""

    @property
    @abstractmethod
    def item_check_sums(self) -> Array | None:
        """Sums over everyone's answers by which items are checked; see `item_check_sums`."""

    @property
    @abstractmethod
    def some_responses(self) -> Responses:
        """Responses of all people, or of a random part of them."""

    @abstractmethod
    def parts(self) -> Iterator[Fit]:
        """The fit as fits in memory that have all of its people, one after the other."""

    @abstractmethod
    def item_screener(self, executor: Any = None) -> Screener:
        """What sums up the score tests of all items over everyone.

        An executor works on shards; default: threads of this process.
        """

    @property
    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """Numbers of answers, people and items."""

    @abstractmethod
    def sentences(self) -> list[str]:
        """Data, convergence, priors and cautions in words."""

    @abstractmethod
    def evidence_facts(self) -> dict[str, str]:
        """Evidence, criteria and the like, for a summary."""

    def summary(self) -> Summary:
        """All that there is to say, as text, HTML or LaTeX.

        Returns
        -------
        Summary
            Prints as text, shows in notebooks, and has `to_html`, `to_latex` and `save`.
        """
        return fit_summary(self)

    @property
    @abstractmethod
    def frame(self) -> str | None:
        """Kind of data frame that goes out, such as "pandas"; None for `dynaesti.Frame`."""

    @cached_property
    def scale(self) -> Scale:
        """Scale that abilities and items are reported on."""
        return reported_scale(self.bank, self.options["scale"])

    @property
    def gain(self) -> float:
        """Reported ability per unit of z."""
        return self.scale.gain * self.bank.ability_scale.scale

    @property
    def shift(self) -> float:
        """Reported ability at z = 0."""
        return self.scale.gain * self.bank.ability_scale.location + self.scale.shift

    @property
    def ability_probability(self) -> float:
        """Probability that people differ at all: 1 unless the answers may be noise."""
        return float(self.options.get("ability_probability", 1.0))  # absent in older files

    @property
    def items(self) -> Any:
        """The items as a frame: item, model, n, parameters, standard errors (``se_…``), and checks.

        Checks are share (of the points: of right answers where these are 0 and 1), item_rest
        (correlation of the answers with ability known without them) and flag: "wrong key?",
        "useless", "too easy", "too hard", "misfits", or nothing. Each access makes a new frame,
        which the caller may change.
        """
        return make_frame(self._item_columns, self.frame)

    @cached_property
    def _item_columns(self) -> dict[str, Any]:
        columns = item_columns(
            self.bank, self.item_labels, self.responses_per_item, self.covariance, self.scale
        )
        return columns if self.item_checks is None else columns | self.item_checks.columns()

    @cached_property
    def item_checks(self) -> ItemChecks | None:
        """Checks of all items beside ability; None in files of older versions."""
        sums = self.item_check_sums
        return None if sums is None else item_checks(self.bank, sums, self.options["direction"])

    def item_sentences(self) -> list[str]:
        """Whether a simpler model would do, items drift, and which are flagged; or nothing."""
        simpler = self.options.get("simpler_model")  # absent in files of older versions
        out = []
        if simpler:
            out.append(
                f"A simpler model would do: with one slope for all items ({simpler[0]}) the "
                f"evidence is higher by {simpler[1]:.0f} nats, items integrated out."
            )
        drift = self.item_drift
        if drift is not None:
            sd = abs(self.gain) * np.sqrt(drift.variance)
            out.append(
                f"Items become easier or harder in the course of time (sd {sd:.2f} on the scale of "
                "abilities); predictions follow them, and a screening for drift tells which."
            )
        return out + self._flag_sentences()

    def _flag_sentences(self) -> list[str]:
        flags = [] if self.item_checks is None else self.item_checks.flags()
        flagged = [k for k, flag in enumerate(flags) if flag]
        if not flagged:
            return []
        labels = self.item_labels.tolist()
        shown = ", ".join(f"{labels[k]} ({flags[k]})" for k in flagged[:SHOWN_FLAGS])
        more = f", and {len(flagged) - SHOWN_FLAGS:,} more" if len(flagged) > SHOWN_FLAGS else ""
        return [f"{count_noun(len(flagged), 'items')} of {len(flags):,} flagged: {shown}{more}."]

    def require_people(self) -> None:
        """Refuse a question about people where there are none.

        Raises
        ------
        InputError
            If nobody has answered: the fit is a bank of items.
        """
        if not self.responses_per_item.any():
            raise InputError(
                "this fit is a bank of items without people, and the question is about people; "
                "update(data) brings some, and score(data) and predict(data) answer for any "
                "without keeping them"
            )

    @property
    def n_parameters(self) -> float:
        """Number of parameters that were learned.

        Those of the items, the zero and unit of ability where they are free, hyper-parameters and
        weights of the population's kernels, and what the data decide of the cohort and of effects
        (its coefficients are smoothed, so that they count in part).
        """
        items = sum(int(block.free.sum()) for block in self.bank.blocks)
        scale = self.bank.ability_scale
        cohort = self.priors.cohort
        moving = 0.0 if cohort is None else cohort.effective_parameters
        kernels = int(self.options.get("kernel_parameters", 0))  # absent in files of older versions
        return items + int(scale.free_location) + int(scale.free_scale) + kernels + moving

    @property
    def history(self) -> Any:
        """The iterations as a frame: iteration, stage, objective, log_evidence, change, seconds.

        `change` is the root mean square step of the parameters, in their standard errors.
        """
        names = ("iteration", "stage", "objective", "log_evidence", "change", "seconds")
        return make_frame(
            {name: [getattr(record, name) for record in self.trace] for name in names}, self.frame
        )

    def item_intervals(self, level: float = 0.95) -> Any:
        """Confidence intervals of all item parameters, in both metrics.

        Slopes of items that run forward have intervals on the scale of their logarithm, guessing
        and slipping on that of their log odds, so that no interval leaves what is possible;
        difficulties and intercepts have symmetric ones.

        Parameters
        ----------
        level : float, default 0.95
            Probability that each holds.

        Returns
        -------
        frame
            Columns item, parameter (a, b, intercept, c, …), estimate, se, lower, upper.

        Raises
        ------
        InputError
            If the fit has no standard errors.

        Examples
        --------
        >>> import dynaesti as dy
        >>> table = dy.simulate.responses(people=40, items=5, per_person=12, seed=1).table
        >>> frame = dy.DynAEsti("2PL").fit(table).item_intervals(0.9)
        >>> list(frame.columns), list(frame["parameter"][:3])
        (['item', 'parameter', 'estimate', 'se', 'lower', 'upper'], ['a', 'b', 'intercept'])
        """
        return make_frame(interval_columns(self._item_columns, level), self.frame)

    def item_covariance(self, items: Any = None) -> Any:
        """Covariances of each item's reported parameters, in both metrics.

        They are what standard errors are the diagonal of: of an item's own parameters with each
        other. Those of two items with each other are not kept.

        Parameters
        ----------
        items : label or sequence of labels, optional
            Some items. Default: all.

        Returns
        -------
        frame
            Columns item, parameter, other, covariance, correlation: a row for each pair of
            parameters of an item.

        Raises
        ------
        InputError
            If the fit has no standard errors.

        Examples
        --------
        >>> import dynaesti as dy
        >>> table = dy.simulate.responses(people=40, items=5, per_person=12, seed=1).table
        >>> frame = dy.DynAEsti("2PL").fit(table).item_covariance("i3")
        >>> list(frame.columns), len(frame)  # a, b and the intercept
        (['item', 'parameter', 'other', 'covariance', 'correlation'], 9)
        """
        labels = self.item_labels
        chosen = np.arange(labels.size)
        if items is not None:
            chosen = index_of(labels, as_list(items), "items")
        columns = covariance_columns(self.bank, labels, self.covariance, self.scale, chosen)
        return make_frame(columns, self.frame)

    @property
    def bandwidths(self) -> Any:
        """The kernels and their weights in the population, as a frame."""
        return make_frame(
            {"kernel": [kernel.describe() for kernel in self.kernels], "weight": self.population},
            self.frame,
        )

    @cached_property
    def likelihood_table(self) -> LogLikelihoodTable:
        """Log-likelihood rows of all items on the ability grid."""
        return tabulate_items(self.bank, ability_grid(self.bank, self.max_abs_ability))

    @cached_property
    def item_numbers(self) -> dict[Any, int]:
        """Number of each item by its label."""
        return {label: k for k, label in enumerate(self.item_labels.tolist())}

    @cached_property
    def item_index(self) -> tuple[Ints, Ints]:
        """Block of each item and its index within the block, (n_items,) each."""
        return self.bank.index_in_blocks()

    def information_at(self, ability: Any, items: Any = None) -> Array:
        """Fisher information of each item about ability, on the reported scale.

        Parameters
        ----------
        ability : array (n_points,)
            On the reported scale.
        items : label or sequence of labels, optional
            Some items. Default: all.

        Returns
        -------
        array (n_items, n_points)
        """
        theta = (as_vector(ability, "ability") - self.shift) / self.gain
        chosen = (
            np.arange(self.item_labels.size)
            if items is None
            else index_of(self.item_labels, as_list(items), "items")
        )
        return item_information(self.bank, theta)[chosen] / self.gain**2

    def test_information(self, ability: Any, items: Any = None) -> Any:
        """Information of a whole test over ability, with the standard error of measurement.

        Parameters
        ----------
        ability : array (n_points,)
            On the reported scale.
        items : label or sequence of labels, optional
            The items of the test. Default: all.

        Returns
        -------
        frame
            Columns ability, information, se (1 / √information).

        Examples
        --------
        >>> import dynaesti as dy
        >>> table = dy.simulate.responses(people=12, items=5, per_person=12, seed=1).table
        >>> fit = dy.DynAEsti("2PL").fit(table)
        >>> frame = fit.test_information([-1, 0, 1], items=["i0", "i3"])
        >>> list(frame.columns), len(frame)
        (['ability', 'information', 'se'], 3)
        """
        values = as_vector(ability, "ability")
        total = self.information_at(values, items).sum(axis=0)
        with np.errstate(divide="ignore"):
            return make_frame(
                {"ability": values, "information": total, "se": 1 / np.sqrt(total)}, self.frame
            )

    def variance_components(self) -> dict[str, float]:
        """How abilities move in the population, by its kernels.

        Returns
        -------
        dict of str to float
            `stays`, the share of the variance that stays with a person for good (1 for constant
            abilities), and the time scale of the moving part in units of time: `bandwidth`
            (median), `shortest` and `longest` (10 and 90 % quantiles), inf where nothing moves.
        """
        stays = 0.0
        scales = []
        weights = []
        for kernel, weight in zip(self.kernels, self.population, strict=True):
            total = sum(summand.variance for summand in kernel.summands)
            for summand in kernel.summands:
                if summand.constant or isinstance(summand, Level):
                    stays += weight * summand.variance / total
                elif isinstance(summand, BandwidthKernel):
                    scales.append(summand.value_of("bandwidth"))
                    weights.append(weight * summand.variance / total)
        if not scales:
            return {
                "stays": float(stays),
                "bandwidth": np.inf,
                "shortest": np.inf,
                "longest": np.inf,
            }
        order = np.argsort(scales)
        rising = np.cumsum(np.array(weights)[order]) / np.sum(weights)
        low, middle, high = (
            float(np.array(scales)[order][np.searchsorted(rising, q)]) for q in (0.1, 0.5, 0.9)
        )
        return {"stays": float(stays), "bandwidth": middle, "shortest": low, "longest": high}

    @property
    def has_cohort(self) -> bool:
        """Whether the population's mean over time was learned."""
        return self.priors.cohort is not None and self.priors.cohort.has_curve

    @property
    def effects(self) -> Any:
        """Effects of covariates, practice and exchangeable blocks, on the scale of abilities.

        Returns
        -------
        frame
            Columns term, estimate, se, lower, upper (95 %), z, p; a row for each column of the
            formula. Terms that cannot be learned have no estimate. A block, such as
            ``random(rater)``, has a row with its size, the standard deviation of its effects, and
            then one for each of its levels, without z and p.

        Raises
        ------
        InputError
            If the fit has no effects.

        Examples
        --------
        >>> import dynaesti as dy
        >>> table = dy.simulate.responses(people=60, items=5, per_person=8, seed=1).table
        >>> table["older"] = [int(name[1:]) % 2 for name in table["id"]]
        >>> fit = dy.DynAEsti("1PL", effects="older").fit(table)
        >>> list(fit.effects.columns), list(fit.effects["term"])
        (['term', 'estimate', 'se', 'lower', 'upper', 'z', 'p'], ['older'])
        """
        return make_frame(effect_columns(self), self.frame)

    def cohort(self, at: Any = None, *, level: float = 0.7) -> Any:
        """Mean ability of the population over time, or of each of its groups.

        Everyone's own curve varies about it. Beyond the data it goes on with a slope that fades,
        and its band widens.

        Parameters
        ----------
        at : times, optional
            Default: 50 times over all the data.
        level : float, default 0.7
            Probability of the band, which is that of the mean itself, not of people.

        Returns
        -------
        frame
            Columns time, mean, sd, lower, upper; with groups, group before them.

        Raises
        ------
        InputError
            If the fit has no cohort: it was left out, abilities are constant, or it cannot be
            told from the items' difficulties.

        Examples
        --------
        >>> import dynaesti as dy
        >>> drawn = dy.simulate.responses(people=60, items=9, per_person=9, growth=2.0, seed=1)
        >>> fit = dy.DynAEsti("2PL").fit(drawn.table)
        >>> frame = fit.cohort([0, 50, 100])
        >>> list(frame.columns)
        ['time', 'mean', 'sd', 'lower', 'upper']
        >>> bool(frame["mean"][-1] > frame["mean"][0])
        True
        """
        return make_frame(cohort_columns(self, at, level), frame_kind(at) or self.frame)

    def compare_groups(self, t0: Any, t1: Any, *, level: float = 0.95) -> Any:
        """Differences between groups, in level at two times and in growth between them.

        Parameters
        ----------
        t0, t1 : time
            From when, and to when.
        level : float, default 0.95
            Probability of the intervals.

        Returns
        -------
        frame
            Three rows for each pair of groups: columns group, other, what ("level at …", twice,
            and "growth"), difference (group − other), se, lower, upper, and probability, that the
            difference is above 0.

        Raises
        ------
        InputError
            If the fit has no groups, or no standard errors.

        Examples
        --------
        >>> import dynaesti as dy
        >>> table = dy.simulate.responses(people=60, items=9, per_person=9, seed=1).table
        >>> table["class"] = ["even" if int(p[1:]) % 2 == 0 else "odd" for p in table["id"]]
        >>> fit = dy.DynAEsti("2PL", groups="class").fit(table)
        >>> frame = fit.compare_groups(0, 100)
        >>> frame["what"].tolist()
        ['level at 0', 'level at 100', 'growth']
        """
        return make_frame(group_differences(self, t0, t1, level), self.frame)

    def growth(self, t0: Any, t1: Any, *, level: float = 0.95) -> Any:
        """How much the cohort grew between two times, or each group, with its interval.

        `cohort` takes a line within its noise for none, which is best for forecasts. This is the
        estimate of the data alone, so that its interval and a test by it hold their level.

        Parameters
        ----------
        t0, t1 : time
            From when, and to when.
        level : float, default 0.95
            Probability of the interval.

        Returns
        -------
        frame
            Columns growth, se, lower, upper, and probability, that the cohort grew; with groups a
            row for each, and a column group. NaN where items that change could explain it as well.

        Raises
        ------
        InputError
            If the fit has no cohort, or no standard errors.

        Examples
        --------
        >>> import dynaesti as dy
        >>> drawn = dy.simulate.responses(people=60, items=9, per_person=9, growth=2.0, seed=1)
        >>> frame = dy.DynAEsti("2PL").fit(drawn.table).growth(0, 100)
        >>> list(frame.columns)
        ['growth', 'se', 'lower', 'upper', 'probability']
        >>> bool(frame["lower"][0] > 0)
        True
        """
        return make_frame(growth_columns(self, t0, t1, level), self.frame)

    def to_clock(self, times: Any) -> Array:
        """Users' times on the fit's clock.

        Parameters
        ----------
        times : times (n_times,)
            As in the data; dates may be ISO text.

        Returns
        -------
        array (n_times,)
            Time since the fit's origin, or since each person's start where the fit counts so.
        """
        return to_clock(self.response_template, times)

    def from_clock(self, offsets: Array) -> Any:
        """Times on the fit's clock as users give them: the inverse of `to_clock`.

        Parameters
        ----------
        offsets : array (n_times,)

        Returns
        -------
        array (n_times,)
            Numbers or dates, as in the data.
        """
        return from_clock(self.response_template, offsets)

    @property
    def covariate_kinds(self) -> dict[str, str]:
        """Columns that the effects need of further data, with their kinds."""
        return covariate_kinds(self.priors.effects, self.options)

    def read_new_data(self, data: Any, unanswered: bool = False) -> Responses:
        """Read further data with the columns of the fit, else by their usual names.

        Parameters
        ----------
        data : frame, mapping or path
        unanswered : bool, default False
            Whether responses may be missing.

        Returns
        -------
        Responses
        """
        template = self.response_template
        columns: dict[str, Any] = {
            key: name
            for key, name in template.columns.items()
            if name is not None and key != "model"
        }
        reading: dict[str, Any] = {
            "clock": template.clock,
            "timeless": "time" not in columns and all(kernel.static for kernel in self.kernels),
            "unanswered": unanswered,
            "unit": None if template.axis.unit in ("days", template.unit) else template.unit,
        }
        reading["covariates"] = self.covariate_kinds
        try:
            found = Responses.read(data, **columns, **reading, reuse_columns=True)
        except MissingColumnError:
            found = Responses.read(data, **reading)
        absent = [name for name in self.covariate_kinds if name not in found.covariates]
        if absent:
            raise InputError(
                f"effects: the data are Responses already, without the column {absent[0]!r}; read "
                f"them with Responses.read(…, covariates={self.covariate_kinds!r})"
            )
        return split_items(found, self.options.get("free"))

    def scorer(self) -> Scorer:
        """Items and population without the people: what following learners live needs.

        Returns
        -------
        Scorer
            Small to save and quick to open; `start` and `add` work for anyone.

        Raises
        ------
        InputError
            If a kernel has no state of a few numbers, as Periodic and Trend.

        Examples
        --------
        >>> import dynaesti as dy
        >>> table = dy.simulate.responses(people=12, items=5, per_person=12, seed=1).table
        >>> scorer = dy.DynAEsti("2PL").fit(table).scorer()
        >>> state = scorer.add(scorer.start(), 101.0, "i3", 1)
        >>> scorer.ability(state).mean > scorer.ability(scorer.start(), 101.0).mean
        True
        """
        return scorer_of(self)

    def item_cautions(self) -> list[str]:
        """What the answers cannot determine of items and cohort, in words."""
        left_out = self.options.get("cohort_left_out")  # absent in files of older versions
        out = [left_out] if left_out else []
        labels = self.item_labels.tolist()
        lost = np.sort(np.concatenate([block.items[block.at_bound] for block in self.bank.blocks]))
        if lost.size:
            out.append(
                f"{count_noun(lost.size, 'items')} of {len(labels):,} have no finite estimate "
                f"(first: {labels[lost[0]]!r}): everybody answered alike, or ability separates the "
                "answers perfectly. Their parameters are at the bounds; "
                f"{option('priors', 'weak')} gives them a value."
            )
        if self.bank.ability_scale.at_bound:
            out.append(
                "The spread of abilities has no finite estimate: ability separates the answers "
                "perfectly. It is at its bound, and the items' unit with it."
            )
        for block, cov in zip(self.bank.blocks, self.covariance or (), strict=False):
            names = block.model.parameter_names(block.size)
            if "guess" not in names:
                continue
            k = names.index("guess")
            vague = np.sqrt(np.maximum(cov[:, k, k], 0.0)) > VAGUE * block.prior_sd[k]
            if vague.mean() > 0.5:
                out.append(
                    f"The answers hold almost no information on guessing for {int(vague.sum()):,} "
                    f"of {count_noun(vague.size, 'items')}: their c depends on the prior, and so "
                    "do b and a."
                )
        if (
            self.options["direction"] == "free"
            and not self.options.get("orient")
            and not self.bank.ability_scale.free_location
        ):
            out.append(
                "The direction of the scale was decided by the mean slope; orient= fixes it."
            )
        return out

    def model_names(self) -> str:
        """Names of the items' models, in one line."""
        return ", ".join(sorted({block.model.name for block in self.bank.blocks}))

    def convergence_sentences(
        self, log_evidence: float, n_unconverged: int, dropped: int
    ) -> list[str]:
        """Convergence, evidence, scale and priors in a few sentences.

        Parameters
        ----------
        log_evidence : float
            Of all responses.
        n_unconverged : int
            Number of curves on which EP did not converge.
        dropped : int
            Number of rows without a response.

        Returns
        -------
        list of str
        """
        heavy = int(np.argmax(self.population))
        verdict = f"The fit did NOT converge (raise {option('iterations')})"
        if self.converged:
            verdict = "The fit converged"
        learned = f"{verdict} after {count_noun(len(self.trace), 'iterations')}"
        if not self.trace:
            learned = "Items and population are as stated"
        others = f", the heaviest of {len(self.kernels)}" if len(self.kernels) > 1 else ""
        merged = len(self.coding.merged)
        told = [
            f"{learned}; log evidence {log_evidence:.2f}.",
            *cohort_sentences(self),
            f"Scale: {self.scale.name}.",
            f"Kernel of abilities: {self.kernels[heavy].describe()}, of "
            f"{self.population[heavy]:.0%} of the population{others}.",
        ]
        if n_unconverged:
            told.append(f"EP did not converge for {count_noun(n_unconverged, 'curves')}.")
        if dropped:
            told.append(f"Without a response, and left out: {count_noun(dropped, 'cells')}.")
        if merged:
            told.append(f"Rare categories were merged in {count_noun(merged, 'items')}.")
        return told
