"""Where the items start.

Category frequencies, loadings on the first component, parameters that were given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dynaesti.core import Array, Bools, Ints, finite_number
from dynaesti.data import Labels, Responses, first_component, index_of, standardised
from dynaesti.errors import InputError, ResponseError
from dynaesti.estimation.coding import ResponseCoding
from dynaesti.estimation.response_counts import ResponseCounts
from dynaesti.model import (
    HYPER_ITEMS,
    STEEPEST,
    AbilityScale,
    ContinuousItemModel,
    CustomItemModel,
    GaussianItem,
    ItemBank,
    ItemBlock,
    ItemModel,
    log_odds,
)

START_SLOPE = 1.0
HYPER_PEOPLE = (
    10  # fewer people say too little of the unit of ability for items to be left to themselves
)
# items count as sparse below so many answers of the middle one, or above so many to a person
THIN = 50
CROWDED = 2


def build_bank(
    labels: Labels,
    coding: ResponseCoding,
    response_counts: ResponseCounts,
    priors: str | None,
    fixed: Mapping[Any, Mapping[str, float]],
    starts: Mapping[Any, Mapping[str, float]],
    slope: Array | None = None,
    population: tuple[float, float] | None = None,
) -> ItemBank:
    """All items in blocks at their starting values.

    `slope`: rough signed slopes, where items may run backwards. `population`: mean and sd of the
    abilities, on the anchors' scale.
    """
    held, begun = (
        _by_number(labels, table, name) for name, table in (("fixed", fixed), ("start", starts))
    )
    zero, unit = _counted_from(held or begun, coding, response_counts)
    slope = np.full(labels.size, START_SLOPE) if slope is None else slope
    sizes = coding.table.max(axis=1, initial=-1) + 1
    sizes = np.where([m.binary for m in coding.models], 2, sizes)
    keys: dict[tuple[ItemModel, int], list[int]] = {}
    for i, model in enumerate(coding.models):
        keys.setdefault((model, int(sizes[i]) if model.categorical else 0), []).append(i)
    thin = (
        np.median(response_counts.number) < THIN or labels.size > CROWDED * response_counts.people
    )
    enough = labels.size >= HYPER_ITEMS and response_counts.people >= HYPER_PEOPLE
    kind = "sparse" if priors == "weak" and thin and enough else priors
    blocks = []
    first_row = 0
    for (model, size), members in keys.items():
        items = np.array(members, dtype=np.int64)
        share = _shares(response_counts, coding, items, model, size)
        u = model.initial(share, np.abs(slope[items]), slope[items] < 0)
        weak = model.priors(size)
        sd = np.array([w.sd for w in weak]) if priors is not None else np.full(len(weak), np.inf)
        values = _level_values(coding, items, size, model, response_counts)
        free = np.ones(u.shape, dtype=bool)
        mine = labels[items].tolist()
        u, _ = _placed(
            model, size, mine, u, free, [begun.get(int(k), {}) for k in items], (zero, unit), values
        )
        u, free = _placed(
            model, size, mine, u, free, [held.get(int(k), {}) for k in items], (zero, unit), values
        )
        block = ItemBlock(
            model,
            size,
            items,
            first_row,
            u,
            free,
            values,
            np.array([w.mean for w in weak]),
            sd,
            kind == "weak",
        )
        if model.shared:
            block = replace(
                block,
                u=u.mean(axis=1, keepdims=True) + (u - u.mean(axis=1, keepdims=True)).mean(axis=0),
            )
        blocks.append(block)
        first_row = block.end_row
    slope_fixed = any(
        b.model.has_unit_slope or _holds(b, ("log_a", "slope", "alpha")) for b in blocks
    )
    place_fixed = any(_holds(b, ("b", "intercept", "threshold", "delta")) for b in blocks)
    slope_fixed |= (
        len({v for values in held.values() for key, v in values.items() if key[:1] == "b"}) > 1
    )  # two places make a unit, too
    zero, unit = (zero, unit) if held else (0.0, 1.0)
    if population is not None:
        if not (place_fixed and slope_fixed):
            raise InputError(
                "population: mean and sd are told on the scale of anchored items; give `fixed` "
                "slopes and difficulties too"
            )
        stated = AbilityScale(
            (population[0] - zero) / unit,
            float(np.log(population[1] / unit)),
            zero=zero,
            unit=unit,
            stated=True,
        )
        return ItemBank(tuple(blocks), stated, kind)
    few = response_counts.people < HYPER_PEOPLE
    return ItemBank(
        tuple(blocks),
        AbilityScale(
            free_location=place_fixed, free_scale=slope_fixed, zero=zero, unit=unit, few=few
        ),
        kind,
    )


def _by_number(
    labels: Labels, given: Mapping[Any, Mapping[str, float]], name: str
) -> dict[int, Mapping[str, float]]:
    """Parameters by the items' numbers: an item is known by its written form, "0" is 0."""
    numbers = index_of(labels, list(given), name).tolist()
    twice = [label for label, count in Counter(numbers).items() if count > 1]
    if twice:
        raise InputError(f"{name}: item {labels.tolist()[twice[0]]!r} is given twice; keep one")
    return dict(zip(numbers, given.values(), strict=True))


def _counted_from(
    given: Mapping[int, Mapping[str, float]],
    coding: ResponseCoding,
    response_counts: ResponseCounts,
) -> tuple[float, float]:
    """Zero and unit from which parameters that were given are counted, to be computed with.

    0 and 1 unless they lie off that.

    Starting values, weak priors and grids are all made for abilities of about mean 0 and sd 1, and
    slopes about 1. Measurements tell where abilities lie by their means, and how far apart by their
    sds; items of slope 1 in common are counted in its unit exactly.
    """
    if any(isinstance(coding.models[k], CustomItemModel) for k in given):
        return 0.0, 1.0
    rasch = [
        values["a"]
        for k, values in given.items()
        if coding.models[k].has_unit_slope and values.get("a")
    ]
    if rasch:
        if np.ptp(rasch) > 1e-6 * max(map(abs, rasch)):
            raise InputError(
                f"item parameters: slopes from {min(rasch):g} to {max(rasch):g}, where the model "
                f"has one in common; give one"
            )
        return (0.0, 1.0 / rasch[0]) if abs(rasch[0] - 1.0) > 1e-9 else (0.0, 1.0)
    means, sds = response_counts.mean_and_sd()
    slopes = []
    places = []
    for k, values in given.items():
        if isinstance(coding.models[k], GaussianItem):
            a = values.get("a")
            b = values.get("b")
            if a and b is not None and sds[k] > 0:
                slopes.append(abs(a) / sds[k])
                places.append(b + means[k] / a)
            continue
        slopes += [abs(v) for key, v in values.items() if key[:1] == "a" and v]
        places += [v for key, v in values.items() if key[:1] == "b"]
        places += [
            -v / values[key.replace(*pair)]
            for key, v in values.items()
            for pair in (("intercept", "a"), ("delta", "alpha"))
            if key.startswith(pair[0]) and values.get(key.replace(*pair))
        ]
    fixed_slopes = any(coding.models[k].has_unit_slope for k in given)
    if fixed_slopes and places and np.ptp(places) > FARTHEST_LOGITS:
        raise InputError(
            f"item parameters: difficulties from {min(places):g} to {max(places):g} are not in "
            f"logits, as a model of slope 1 "
            "has them; give the slope in common, a, with them"
        )
    unit = (
        float(np.exp(-np.mean(np.log(slopes))))
        if slopes
        else 1.0
        if fixed_slopes
        else _unit_of_places(given, coding, means)
    )
    zero = float(np.median(places)) if places else 0.0
    if not 1 / LONGEST_UNIT <= unit <= LONGEST_UNIT or abs(zero) > LONGEST_UNIT * unit:
        raise InputError(
            f"item parameters: on a scale with zero near {zero:.3g} and a unit near {unit:.3g} "
            f"nothing can be computed; use "
            "another one"
        )
    return (
        (zero, unit)
        if not 1 / ODD_UNIT <= unit <= ODD_UNIT or abs(zero) > ODD_ZERO * unit
        else (0.0, 1.0)
    )


def _unit_of_places(
    given: Mapping[int, Mapping[str, float]], coding: ResponseCoding, means: Array
) -> float:
    """The unit that difficulties alone are in.

    How far apart they are told to be, against how far the shares of right answers say so.
    """
    told = [
        (values["b"], -FLATTENED * log_odds(means[[k]])[0])
        for k, values in given.items()
        if coding.models[k].binary and "b" in values
    ]
    if len(told) > 1:
        wanted, seen = (float(np.std(column)) for column in zip(*told, strict=True))
        return wanted / seen if wanted > 0 and seen > SAME_PLACE else 1.0
    places = [v for values in given.values() for key, v in values.items() if key[:1] == "b"]
    spread = float(np.std(places)) if len(places) > 2 else 1.0
    return spread if spread > 0 and not 1 / ODD_SPREAD <= spread <= ODD_SPREAD else 1.0


# log odds of shares lie closer to 0 than difficulties: averaging over abilities flattens the
# curve
FLATTENED = 1.15
SAME_PLACE = 0.05  # sd of log odds below which items are too alike to tell a unit
LONGEST_UNIT = 1e9
# a scale is counted anew beyond these: its unit as a factor, its zero in units
ODD_UNIT = 1.3
ODD_ZERO = 0.5
ODD_SPREAD = 2.5  # of difficulties alone, as a factor: sds of a few say little
FARTHEST_LOGITS = 40.0
NO_CHANCE = 1e-9  # what a guess or slip of exactly 0 is taken as: its logit has no end


def _holds(block: ItemBlock, kinds: tuple[str, ...]) -> bool:
    """Whether some item's parameter of these kinds is fixed.

    A user's own formula says nothing of kinds.
    """
    if isinstance(block.model, CustomItemModel):
        return False
    mine = [
        k
        for k, name in enumerate(block.model.parameter_names(block.size))
        if name.startswith(kinds)
    ]
    return not block.free[:, mine].all()


def _level_values(
    coding: ResponseCoding,
    items: Ints,
    size: int,
    model: ItemModel,
    response_counts: ResponseCounts,
) -> Array:
    """The response that each category stands for, the lowest of those merged into it.

    Of measurements their mean and sd.
    """
    if isinstance(model, GaussianItem):
        mean, sd = response_counts.mean_and_sd()
        if not (np.isfinite(mean[items]).all() and np.isfinite(sd[items]).all()):
            raise ResponseError(
                "resp: measurements are too large to compute with; use a larger unit"
            )
        if not (sd[items] > 0).any():
            raise ResponseError(
                "resp: the measurements of each item are all alike; nothing can be learned from "
                "them"
            )
        return np.stack(
            [mean, np.where(sd > 1e-12 * np.maximum(np.abs(mean), 1e-300), sd, 1.0)], axis=1
        )[items]
    if isinstance(model, ContinuousItemModel):
        return np.zeros((items.size, 0))
    out = np.full((items.size, size), np.nan)
    for row, item in enumerate(items):
        for k in range(coding.values.size - 1, -1, -1):
            if coding.table[item, k] >= 0:
                out[row, coding.table[item, k]] = coding.values[k]
    if model.binary:
        out[:] = [0.0, 1.0]
    return out


def unit_of(resp: Array) -> tuple[float, float]:
    """Zero and unit of one item's measurements."""
    mean = float(resp.mean())
    sd = float(resp.std())
    return mean, sd if sd > 1e-12 * max(abs(mean), 1e-300) else 1.0


def _shares(
    response_counts: ResponseCounts,
    coding: ResponseCoding,
    items: Ints,
    model: ItemModel,
    size: int,
) -> Array:
    """Share of each category among an item's answers, or the mean and sd of amounts."""
    if not model.categorical:
        return np.stack(response_counts.mean_and_sd(), axis=1)[items]
    out = np.zeros((items.size, size))
    for k in range(response_counts.values.size):
        known = coding.table[items, k] >= 0
        out[known, coding.table[items[known], k]] += response_counts.counts[items[known], k]
    return (out + 0.5 / size) / (np.maximum(response_counts.number[items], 1)[:, None] + 0.5)


def _placed(
    model: ItemModel,
    size: int,
    labels: list[Any],
    u: Array,
    free: Bools,
    given: list[Mapping[str, float]],
    scale: tuple[float, float],
    values: Array,
) -> tuple[Array, Bools]:
    """Starting values or fixed ones put in place of u.

    What is not given stays. They are told of abilities zero + unit · θ.
    """
    if model.has_unit_slope:  # one slope for all, which is the unit
        given = [
            {
                name: value
                for name, value in one.items()
                if name != "a" and not name.startswith("intercept")
            }
            for one in given
        ]
    names = sorted({name for one in given for name in one})
    if not names:
        return u, free
    known = set(model.to_response_unit(model.constrain(u), values)) | {"intercept"}
    odd = [name for name in names if name not in known]
    if odd:
        raise InputError(
            f"item parameters: a {model.name} item has no {odd[0]!r}; it has "
            f"{', '.join(sorted(known))}"
        )
    table = {name: np.array([float(one.get(name, np.nan)) for one in given]) for name in names}
    with np.errstate(invalid="ignore", divide="ignore"):
        found = model.unconstrain(model.from_response_unit(table, values), size)
    found = np.where(np.isneginf(found), np.log(NO_CHANCE), found)
    zero, unit = scale
    own = u if scale == (0.0, 1.0) else model.unconstrain(model.constrain(u, unit, zero), size)
    placed = np.where(np.isnan(found), own, found)
    told = model.to_response_unit(model.constrain(placed), values)
    for name, wanted in table.items():
        lost = ~np.isnan(wanted) & ~(
            np.abs(told.get(name, np.full(wanted.shape, np.nan)) - wanted)
            < 1e-6 * (1 + np.abs(wanted))
        )
        if lost.any() or (model.shared and np.isfinite(wanted).any()):
            k = int(lost.argmax())
            raise InputError(
                f"item parameters: {name} = {wanted[k]:g} of item {labels[k]!r} cannot be used by "
                f"itself in a {model.name} "
                f"item, or is out of its range; give all of {', '.join(told)}, or leave it out"
                + (" (rating scales share their steps)" if model.shared else "")
            )
    counted = (
        placed
        if scale == (0.0, 1.0)
        else model.unconstrain(model.constrain(placed, 1 / unit, -zero / unit), size)
    )
    steep = np.abs(model.slope_sign(counted)) > STEEPEST
    if (steep & ~np.isnan(found).all(axis=1)).any():
        k = int((steep & ~np.isnan(found).all(axis=1)).argmax())
        raise InputError(
            f"item parameters: item {labels[k]!r} is steeper than can be computed with (a slope "
            f"of {STEEPEST:g} to a typical "
            "one of 1); give it a smaller slope"
        )
    return counted, free & np.isnan(found)


def initial_signed_slopes(responses: Responses, coding: ResponseCoding) -> Array:
    """Rough signed slopes from the first principal component of the standardised answers.

    Which items run with it, which against.
    """
    n = np.maximum(np.bincount(responses.item, minlength=responses.items.size), 1)
    score = standardised(
        responses.item, coding.code(responses, responses.item), responses.items.size
    )
    _, person = first_component(
        responses.person, responses.item, score, responses.people.size, responses.items.size
    )
    together = (
        np.bincount(responses.item, score * person[responses.person], responses.items.size) / n
    )
    spread = np.bincount(responses.item, person[responses.person] ** 2, responses.items.size) / n
    r = np.clip(together / np.sqrt(np.maximum(spread, 1e-6)), -0.9, 0.9)
    rough = 1.7 * r / np.sqrt(1 - r**2)  # of a logistic item, were the component the ability
    rough = np.sign(rough) * np.clip(np.abs(rough), 0.2, 2.5)
    return np.where(rough == 0, 0.2, rough) * (1.0 if rough.sum() >= 0 else -1.0)


def given_items(given: Any, name: str) -> Mapping[Any, Mapping[str, float]]:
    """Item parameters from a mapping, or a frame with an item column."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        if not all(isinstance(value, Mapping) for value in given.values()):
            raise InputError(f"{name}: expected item → {{parameter: value}}")
        return {
            label: {
                key: finite_number(value, f"{name}: {key} of item {label!r}")
                for key, value in values.items()
            }
            for label, values in given.items()
        }
    import narwhals as nw

    try:
        frame = nw.from_native(given, eager_only=True)
    except TypeError:
        raise InputError(
            f"{name}: expected a mapping or a frame with an item column, got {type(given).__name__}"
        ) from None
    if "item" not in frame.columns:
        raise InputError(
            f"{name}: the frame has no column 'item'; it has {', '.join(frame.columns)}"
        )
    skip = {"item", "model", "n"} | {column for column in frame.columns if column.startswith("se_")}
    out: dict[Any, dict[str, float]] = {}
    for row in frame.iter_rows(named=True):
        label = row["item"]
        if label in out:
            raise InputError(f"{name}: item {label!r} is listed twice; keep one of its rows")
        told = {
            k: v for k, v in row.items() if k not in skip and v is not None and v == v
        }  # gaps are not given
        out[label] = {
            k: finite_number(v, f"{name}: {k} of item {label!r}") for k, v in told.items()
        }
    return out
