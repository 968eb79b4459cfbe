"""Differential item functioning: items that are easier for some people than for others as able."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from dynaesti.core import Array
from dynaesti.data import NO_LEVEL, Covariate, label_text, make_frame, read_person_column
from dynaesti.errors import InputError, option
from dynaesti.estimation import joint_tests
from dynaesti.inference import check_level
from dynaesti.results.evaluation.screening.columns import (
    LEAST_ANSWERS,
    GroupColumns,
    NumberColumn,
    TimeLine,
)
from dynaesti.results.evaluation.screening.impact import has_impact_of, with_impact
from dynaesti.results.evaluation.screening.screen import Screening, screen_items
from dynaesti.results.fit import Fit

if TYPE_CHECKING:
    from dynaesti.results.fit_base import FitBase

MOST_GROUPS = 20
MOST_LEVELS = 10  # distinct numbers up to which a column of numbers is one of groups
LEVEL = 0.95  # of the intervals
# bounds of the classes of the Educational Testing Service, in log odds: 1 and 1.5 on its scale
NEGLIGIBLE, LARGE = 1.0 / 2.35, 1.5 / 2.35


def dif(
    fit: FitBase,
    by: str,
    data: Any = None,
    *,
    slopes: bool = False,
    level: float = 0.05,
    purify: bool = True,
    executor: Any = None,
) -> Any:
    """Test every item for differential functioning (DIF) between groups of people.

    An item has DIF if it is easier for one group than for another of the same ability. All items
    are tested in one pass, by score tests: nothing is fitted again but, where the fit does not
    have it, the effect of the column on all answers.

    Parameters
    ----------
    fit : Fit or ShardedFit
    by : str
        The column of the fit's `groups`, one of its `effects`, or one of `data`.
    data : frame, mapping or path, optional
        Table with the column, and the people's ids: one row for each person, or the answers.
    slopes : bool, default False
        Whether to test also if slopes differ (non-uniform DIF).
    level : float, default 0.05
        Rate of false discoveries among the flagged items.
    purify : bool, default True
        Whether flagged items have effects of their own when the others are tested.
    executor : ThreadExecutor or DaskExecutor, optional
        What works on shards. Default: threads of this process.

    Returns
    -------
    frame
        One row for each item and each group but the first: item, group, reference, n (answers of
        the group), effect (how much easier the item is for the group, on the scale of abilities,
        beside the groups' abilities), se, lower, upper (95 %), size (A, B, C: negligible, moderate,
        large, for items of right and wrong answers with slopes), p (of the item), p_adjusted
        (Benjamini–Hochberg over items), flag. With `slopes`, slope is the difference of log slopes,
        and se_slope its standard error. For a column of numbers, group and reference are absent
        and effects are those of one unit.

    Raises
    ------
    InputError
        If the column is unknown, or has one value only.

    Warns
    -----
    HealthWarning
        If more than half of the items are flagged.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=80, items=5, per_person=12, seed=1).table
    >>> table["gender"] = ["f" if int(name[1:]) % 2 else "m" for name in table["id"]]
    >>> fit = dy.DynAEsti("2PL").fit(table)
    >>> found = dy.evaluation.dif(fit, "gender", table)
    >>> list(found.columns)[:5], int(found["flag"].sum())
    (['item', 'group', 'reference', 'n', 'effect'], 0)
    """
    check_level(level)
    fit = _fit_with_column(fit, by, data)
    screened = _screened_by(fit, by, slopes)
    found = screen_items(
        fit.item_screener(executor), fit.priors, screened, fit.item_labels.size, level, purify
    )
    return make_frame(_columns(fit, screened, found), fit.frame)


def _fit_with_column(fit: FitBase, by: str, data: Any) -> FitBase:
    """The fit with the column, and with its effect on all answers."""
    if not isinstance(by, str):
        raise InputError(f"by: expected the name of a column, got {by!r}")
    if data is None and fit.options.get("groups") == by:
        return fit
    effects = fit.priors.effects
    if not isinstance(fit, Fit):
        if data is None and effects is not None and has_impact_of(effects.formula, by):
            return fit
        if data is not None:
            raise InputError(
                "data: fits of shards are tested by the columns that they have; leave it out"
            )
        raise InputError(
            f"by: fits of shards are tested by their groups or effects, and {by!r} is none of "
            f"them; fit the shards with {option('groups', by)}"
        )
    r = fit.responses
    if data is not None:
        found = read_person_column(data, by, r.people, r.columns.get("id"))
        r = replace(r, covariates={**r.covariates, by: found.select(r.person)})
    elif by not in r.covariates:
        raise InputError(
            f"by: the fit does not have the column {by!r}; give a table that has it "
            f"({option('data', 'answers.csv')}), or fit with {option('groups', by)}"
        )
    column = _as_groups(r.covariates[by])
    if column.levels is not None and len(np.unique(column.values)) > MOST_GROUPS:
        _checked(GroupColumns(by, column.levels, False, TimeLine(0.0, 1.0), False))
    grouped = {**r.covariates, by: column}
    is_known = data is None and effects is not None and has_impact_of(effects.formula, by)
    fit = replace(fit, responses=replace(r, covariates=grouped))
    return fit if is_known else with_impact(fit, by)


def _as_groups(column: Covariate) -> Covariate:
    """A column of a few distinct numbers as one of categories."""
    if column.levels is not None:
        return column
    values, code = np.unique(column.values, return_inverse=True)
    if values.size > MOST_LEVELS:
        return column
    return Covariate(code.astype(np.float64), tuple(label_text(value) for value in values))


def _screened_by(fit: FitBase, by: str, slopes: bool) -> GroupColumns | NumberColumn:
    """The columns to test."""
    line = TimeLine.over(fit.time_range)
    some = fit.some_responses
    effects = fit.priors.effects
    if by not in some.covariates:
        levels = tuple(map(str, some.groups))
        return _checked(GroupColumns(by, levels, True, line, slopes))
    column = some.covariates[by]
    if column.levels is None and (effects is None or by not in effects.levels):
        values = column.values
        return NumberColumn(by, float(values.mean()), float(values.std()), line, slopes)
    known = column.levels if column.levels is not None else ()
    if isinstance(fit, Fit):
        seen = np.unique(column.values.astype(np.int64))
        known = tuple(known[k] for k in seen)
    elif effects is not None:
        known = effects.levels[by]
    known = tuple(sorted(known, key=lambda level: level == NO_LEVEL))  # never the reference
    return _checked(GroupColumns(by, known, False, line, slopes))


def _checked(screened: GroupColumns) -> GroupColumns:
    if len(screened.levels) > MOST_GROUPS:
        raise InputError(
            f"by: {screened.name!r} has {len(screened.levels):,} groups, and at most "
            f"{MOST_GROUPS} are compared; is it the right column? If so, join some"
        )
    if len(screened.levels) < 2:
        raise InputError(f"by: {screened.name!r} has one value only, so that nothing can differ")
    return screened


def _columns(
    fit: FitBase, screened: GroupColumns | NumberColumn, found: Screening
) -> dict[str, Any]:
    """Columns of the table: items by turns, and for each item its groups."""
    labels = fit.item_labels.tolist()
    tests = joint_tests(found.efficient)
    se = np.sqrt(np.einsum("itt->it", tests.covariance))
    out: dict[str, Any] = {}
    if isinstance(screened, GroupColumns):
        n_columns = len(screened.levels) - 1
        unit = fit.gain
        out["item"] = [label for label in labels for _ in range(n_columns)]
        out["group"] = list(screened.levels[1:]) * len(labels)
        out["reference"] = [screened.levels[0]] * (n_columns * len(labels))
        out["n"] = found.counts[:, 1:].ravel()
    else:
        n_columns = 1
        unit = fit.gain / screened.sd
        out |= {"item": labels, "n": found.counts.sum(axis=1)}
    effect = unit * tests.effects[:, :n_columns]
    error = abs(unit) * se[:, :n_columns]
    if isinstance(screened, GroupColumns):
        # groups that hardly met an item, or whose reference did not, are not compared
        is_known = found.counts >= LEAST_ANSWERS
        is_compared = is_known[:, 1:] & is_known[:, :1]
        effect = np.where(is_compared, effect, np.nan)
        error = np.where(is_compared, error, np.nan)
    reach = ndtri(0.5 + LEVEL / 2) * error
    out |= {"effect": effect.ravel(), "se": error.ravel()}
    out |= {"lower": (effect - reach).ravel(), "upper": (effect + reach).ravel()}
    if screened.with_slopes:
        by_slope = unit / fit.gain
        out["slope"] = by_slope * tests.effects[:, n_columns:].ravel()
        out["se_slope"] = abs(by_slope) * se[:, n_columns:].ravel()
    if isinstance(screened, GroupColumns):
        out["size"] = _size_classes(fit, effect).ravel().tolist()
    for name in ("p", "p_adjusted", "flag"):
        out[name] = np.repeat(getattr(found, name), n_columns)
    return out


def _size_classes(fit: FitBase, effect: Array) -> Array:
    """A, B or C by the effect in log odds (n_items, n_groups); "" where items have none."""
    out = np.full(effect.shape, "", dtype=object)
    for block in fit.bank.blocks:
        slope = block.reported(block.u, fit.scale.gain, fit.scale.shift).get("a")
        if slope is None or block.size != 2:
            continue
        odds = np.abs(effect[block.items] * slope[:, None])
        known = np.where(odds < NEGLIGIBLE, "A", np.where(odds < LARGE, "B", "C"))
        out[block.items] = np.where(np.isfinite(odds), known, "")
    return out
