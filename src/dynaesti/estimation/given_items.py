"""Item parameters that the user gives, either fixed or as starting values.

They are read, checked, and transformed to the scale that estimation uses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from dynaesti.core import Array, Bools, finite_number
from dynaesti.data import Labels, index_of, read_table
from dynaesti.errors import InputError
from dynaesti.estimation.coding import ResponseCoding
from dynaesti.estimation.foreign_names import own_names
from dynaesti.estimation.response_counts import ResponseCounts
from dynaesti.model import STEEPEST, ItemModel, log_odds
from dynaesti.tables import Frame, as_frame

Given = Mapping[int, Mapping[str, float]]  # item number → {parameter: value}

# log odds of frequencies lie closer to 0 than difficulties, because they average over abilities
FLATTENING = 1.15
MIN_SPREAD = 0.05  # sd of log odds below which items are too similar to show a unit
MAX_UNIT = 1e9
# a scale is transformed if its unit, as a factor, or its zero, in units, is beyond these
ODD_UNIT = 1.3
ODD_ZERO = 0.5
ODD_SPREAD = 2.5  # limit for difficulties alone: the sd of a few of them is uncertain
MAX_LOGITS = 40.0
MISSING = {"", "na", "nan", "null", "none"}  # in tables that are text
# columns of an item table that are no parameters
BESIDE = {"item", "model", "n", "share", "item_rest", "flag"}
# asymptotes that mirt lists for items that have none
NO_ASYMPTOTE = {"c": 0.0, "d": 1.0}
NO_CHANCE = 1e-9  # stands for a guess or slip of exactly 0, whose logit is infinite


class GivenScale(NamedTuple):
    """The scale of given parameters: they belong to abilities zero + unit · θ."""

    zero: float = 0.0
    unit: float = 1.0

    @property
    def is_standard(self) -> bool:
        """Whether zero is 0 and unit is 1, so that nothing has to be transformed."""
        return self == (0.0, 1.0)


def read_given_items(given: Any, name: str) -> Mapping[Any, Mapping[str, float]]:
    """Item parameters from a mapping, or a frame or file with an item column."""
    if given is None:
        return {}
    if isinstance(given, str | PathLike):
        return _from_frame(_numbers_of(as_frame(read_table(given).frame)), name)
    if _is_columns(given):
        return _from_frame(Frame(given), name)
    if isinstance(given, Mapping):
        if not all(isinstance(value, Mapping) for value in given.values()):
            raise InputError(
                f"{name}: expected item → {{parameter: value}}, or columns with one called 'item'"
            )
        names = own_names({key: None for values in given.values() for key in values})
        return {
            label: {
                names[key]: finite_number(value, f"{name}: {key} of item {label!r}")
                for key, value in values.items()
            }
            for label, values in given.items()
        }
    try:
        return _from_frame(as_frame(given), name)
    except TypeError:
        raise InputError(
            f"{name}: expected a mapping, a frame with an item column or a file with one, got "
            f"{type(given).__name__}"
        ) from None


def _is_columns(given: Any) -> bool:
    """Whether a mapping is a table by its columns, not one from item to parameters."""
    return isinstance(given, Mapping) and any(
        str(name).strip().lower() == "item" and not isinstance(column, Mapping)
        for name, column in given.items()
    )


def read_given_models(given: Any) -> dict[Any, str]:
    """Names of the items' models, where a frame or file of item parameters has a column of them."""
    if given is None or (isinstance(given, Mapping) and not _is_columns(given)):
        return {}
    if isinstance(given, str | PathLike):
        table = as_frame(read_table(given).frame)
    else:
        table = Frame(given) if isinstance(given, Mapping) else as_frame(given)
    named = {column.strip().lower(): column for column in table.columns}
    if not {"item", "model"} <= set(named):
        return {}
    pairs = zip(table[named["item"]], table[named["model"]], strict=True)
    return {label: str(name).strip() for label, name in pairs if name is not None and name == name}


def _numbers_of(table: Frame) -> Frame:
    """The table of a text file with its columns of numbers as such; blanks and NA are missing."""
    found: dict[str, Any] = {}
    for column in table.columns:
        values = table[column].to_list()
        found[column] = values
        if column.strip().lower() == "item":
            continue
        texts = ["" if v is None else str(v).strip() for v in values]
        with suppress(ValueError):
            found[column] = [
                float(text) if text.lower() not in MISSING else np.nan for text in texts
            ]
    return Frame(found)


def _from_frame(frame: Frame, name: str) -> Mapping[Any, Mapping[str, float]]:
    """Item parameters from the rows of a frame."""
    labels = [column for column in frame.columns if column.strip().lower() == "item"]
    if not labels:
        raise InputError(
            f"{name}: the table has no column 'item'; it has {', '.join(frame.columns)}"
        )
    names = own_names(
        column
        for column in frame.columns
        if column not in {*BESIDE, *labels} and not column.startswith("se_")
    )
    out: dict[Any, dict[str, float]] = {}
    for row in frame.rows():
        label = row[labels[0]]
        if label in out:
            raise InputError(f"{name}: item {label!r} is listed twice; keep one of its rows")
        # missing entries (None, NaN) are not given
        present = {k: v for k, v in row.items() if k in names and v is not None and v == v}
        out[label] = {
            names[k]: finite_number(v, f"{name}: {k} of item {label!r}") for k, v in present.items()
        }
    return out


def by_item_number(
    labels: Labels, given: Mapping[Any, Mapping[str, float]], name: str
) -> dict[int, Mapping[str, float]]:
    """Given parameters by the items' numbers; labels are compared as text, so "0" is 0."""
    numbers = index_of(labels, list(given), name).tolist()
    twice = [label for label, count in Counter(numbers).items() if count > 1]
    if twice:
        raise InputError(f"{name}: item {labels.tolist()[twice[0]]!r} is given twice; keep one")
    return dict(zip(numbers, given.values(), strict=True))


def given_scale(
    given: Given, coding: ResponseCoding, response_counts: ResponseCounts
) -> GivenScale:
    """Zero and unit of the scale of given parameters: 0 and 1 unless they differ much from that.

    Starting values, weak priors and grids are made for abilities of about mean 0 and sd 1, and
    slopes of about 1. For measurements, means and sds of the responses show zero and unit. Items
    with a common slope have that slope's unit exactly.
    """
    if not all(coding.models[k].can_be_rescaled for k in given):
        return GivenScale()
    common = [
        values["a"]
        for k, values in given.items()
        if coding.models[k].has_unit_slope and values.get("a")
    ]
    if common:
        return _scale_of_common_slope(common)
    means, sds = response_counts.mean_and_sd()
    slopes, locations = _slopes_and_locations(given, coding, means, sds)
    unit_slopes = any(coding.models[k].has_unit_slope for k in given)
    if unit_slopes and locations and np.ptp(locations) > MAX_LOGITS:
        raise InputError(
            f"item parameters: difficulties from {min(locations):g} to {max(locations):g} are not "
            f"in "
            "logits, as a model of slope 1 has them; give the slope in common, a, with them"
        )
    unit = 1.0
    if slopes:
        unit = float(np.exp(-np.mean(np.log(slopes))))
    elif not unit_slopes:
        unit = _unit_of_locations(given, coding, means)
    zero = float(np.median(locations)) if locations else 0.0
    if not 1 / MAX_UNIT <= unit <= MAX_UNIT or abs(zero) > MAX_UNIT * unit:
        raise InputError(
            f"item parameters: on a scale with zero near {zero:.3g} and a unit near {unit:.3g} "
            "nothing can be computed; use another one"
        )
    is_odd = not 1 / ODD_UNIT <= unit <= ODD_UNIT or abs(zero) > ODD_ZERO * unit
    return GivenScale(zero, unit) if is_odd else GivenScale()


def _scale_of_common_slope(slopes: list[float]) -> GivenScale:
    """The scale of items that share one slope."""
    if np.ptp(slopes) > 1e-6 * max(map(abs, slopes)):
        raise InputError(
            f"item parameters: slopes from {min(slopes):g} to {max(slopes):g}, where the model "
            f"has one "
            "in common; give one"
        )
    return GivenScale(0.0, 1.0 / slopes[0]) if abs(slopes[0] - 1.0) > 1e-9 else GivenScale()


def _slopes_and_locations(
    given: Given, coding: ResponseCoding, means: Array, sds: Array
) -> tuple[list[float], list[float]]:
    """Absolute values of given slopes, and given locations, whatever their names in the models."""
    slopes: list[float] = []
    locations: list[float] = []
    for k, values in given.items():
        if coding.models[k].has_response_unit:
            a = values.get("a")
            b = values.get("b")
            if a and b is not None and sds[k] > 0:
                slopes.append(abs(a) / sds[k])
                locations.append(b + means[k] / a)
            continue
        slopes += [abs(v) for key, v in values.items() if key[:1] == "a" and v]
        locations += [v for key, v in values.items() if key[:1] == "b"]
        locations += [
            -v / values[key.replace(*pair)]
            for key, v in values.items()
            for pair in (("intercept", "a"), ("delta", "alpha"))
            if key.startswith(pair[0]) and values.get(key.replace(*pair))
        ]
    return slopes, locations


def _unit_of_locations(given: Given, coding: ResponseCoding, means: Array) -> float:
    """The unit of a scale of which only difficulties are given.

    It is the sd of the given difficulties, divided by the sd that the frequencies of right answers
    imply.
    """
    pairs = [
        (values["b"], -FLATTENING * log_odds(means[[k]])[0])
        for k, values in given.items()
        if coding.models[k].binary and "b" in values
    ]
    if len(pairs) > 1:
        given_sd, implied_sd = (float(np.std(column)) for column in zip(*pairs, strict=True))
        return given_sd / implied_sd if given_sd > 0 and implied_sd > MIN_SPREAD else 1.0
    locations = [v for values in given.values() for key, v in values.items() if key[:1] == "b"]
    spread = float(np.std(locations)) if len(locations) > 2 else 1.0
    return spread if spread > 0 and not 1 / ODD_SPREAD <= spread <= ODD_SPREAD else 1.0


@dataclass(frozen=True)
class ItemsToPlace:
    """Items of one block that may have given parameters."""

    model: ItemModel
    size: int  # number of categories
    labels: list[Any]
    values: Array  # (n_items, …) responses of the categories, or zero and unit of measurements

    def apply(
        self, u: Array, free: Bools, given: list[Mapping[str, float]], scale: GivenScale
    ) -> tuple[Array, Bools]:
        """Put the given parameters in place of the present ones.

        Parameters
        ----------
        u : array (n_items, n_parameters)
            Present parameters; those that are not given stay.
        free : bool array (n_items, n_parameters)
        given : list of mappings
            {parameter: value} of each item.
        scale : GivenScale

        Returns
        -------
        u : array (n_items, n_parameters)
        free : bool array (n_items, n_parameters)
            Which parameters are still free.
        """
        table = self._table(u, given)
        if not table:
            return u, free
        model = self.model
        with np.errstate(invalid="ignore", divide="ignore"):
            found = model.unconstrain(model.from_response_unit(table, self.values), self.size)
        found = np.where(np.isneginf(found), np.log(NO_CHANCE), found)
        own = u
        if not scale.is_standard:
            own = model.unconstrain(model.constrain(u, scale.unit, scale.zero), self.size)
        placed = np.where(np.isnan(found), own, found)
        self._check_kept(placed, table)
        if not scale.is_standard:
            back = model.constrain(placed, 1 / scale.unit, -scale.zero / scale.unit)
            placed = model.unconstrain(back, self.size)
        self._check_slopes(placed, np.asarray(~np.isnan(found).all(axis=1)))
        return placed, free & np.isnan(found)

    def _table(self, u: Array, given: list[Mapping[str, float]]) -> dict[str, Array]:
        """Given parameters by name: (n_items,) each, NaN where an item has none."""
        if self.model.has_unit_slope:  # one slope for all items, which is the unit
            given = [
                {k: v for k, v in one.items() if k != "a" and not k.startswith("intercept")}
                for one in given
            ]
        reported = self.model.to_response_unit(self.model.constrain(u), self.values)
        known = set(reported) | {"intercept"}
        given = [
            {k: v for k, v in one.items() if k in known or v != NO_ASYMPTOTE.get(k)}
            for one in given
        ]
        names = sorted({name for one in given for name in one})
        if not names:
            return {}
        unknown = [name for name in names if name not in known]
        if unknown:
            raise InputError(
                f"item parameters: a {self.model.name} item has no {unknown[0]!r}; it has "
                f"{', '.join(sorted(known))}"
            )
        return {name: np.array([float(one.get(name, np.nan)) for one in given]) for name in names}

    def _check_kept(self, u: Array, table: Mapping[str, Array]) -> None:
        """Refuse given values that the model cannot represent exactly."""
        model = self.model
        reported = model.to_response_unit(model.constrain(u), self.values)
        for name, wanted in table.items():
            held = reported.get(name, np.full(wanted.shape, np.nan))
            off = np.abs(held - wanted)
            lost = ~np.isnan(wanted) & ~(off < 1e-6 * (1 + np.abs(wanted)))
            if lost.any() or (model.shares_thresholds and np.isfinite(wanted).any()):
                k = int(lost.argmax())
                raise InputError(
                    f"item parameters: {name} = {wanted[k]:g} of item {self.labels[k]!r} cannot "
                    f"be used "
                    f"by itself in a {model.name} item, or is out of its range; give all of "
                    f"{', '.join(reported)}, or leave it out"
                    + (" (rating scales share their steps)" if model.shares_thresholds else "")
                )

    def _check_slopes(self, u: Array, is_given: Bools) -> None:
        """Refuse given slopes that no grid of abilities resolves."""
        steep = (np.abs(self.model.slope_sign(u)) > STEEPEST) & is_given
        if steep.any():
            raise InputError(
                f"item parameters: item {self.labels[int(steep.argmax())]!r} is steeper than can "
                f"be "
                f"computed with (a slope of {STEEPEST:g} to a typical one of 1); give it a smaller "
                "slope"
            )
