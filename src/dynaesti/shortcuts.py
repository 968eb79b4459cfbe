"""Two calls for a first look: `fit` a table, `validate` a table."""

from __future__ import annotations

import inspect
from typing import Any

from dynaesti.ability_estimator import DynAEsti
from dynaesti.data import Responses, Validation
from dynaesti.errors import InputError


def fit(data: Any, *, model: Any = None, model_column: str | None = None, **options: Any) -> Any:
    """Fit abilities and items to a table of answers: `DynAEsti` in one call.

    Parameters
    ----------
    data : frame, path, mapping of columns, iterable of dicts, Responses or Shards
        A table with one row a response, see `DynAEsti.fit`.
    model : str, CustomItemModel or mapping, optional
        Item model, see `DynAEsti`. Default: by the responses, 2PL for 0 and 1, GRM for a few whole
        numbers.
    model_column : str, optional
        Column of names of item models, one for each item.
    **options
        Options of `DynAEsti`, such as `groups` or `bandwidth`, and of `DynAEsti.fit`: `id`, `item`,
        `resp`, `time` and the like name columns.

    Returns
    -------
    Fit or ShardedFit

    Raises
    ------
    InputError
        If there is no such option, or the responses do not say which model is meant.
    ResponseError
        If the table cannot be used as it is.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=12, items=5, per_person=12, seed=1).table
    >>> dy.fit(table, bandwidth=30.0, resp="resp")
    <Fit of 144 answers of 12 people to 5 items (2PL), converged>
    """
    of_fit = set(inspect.signature(DynAEsti.fit).parameters) - {"self", "data", "model"}
    of_estimator = set(DynAEsti.names())
    unknown = [name for name in options if name not in of_fit | of_estimator | {"bandwidth"}]
    if unknown:
        raise InputError(
            f"{unknown[0]}: no such option; those of DynAEsti are "
            f"{', '.join(sorted(of_estimator))}, those of its fit {', '.join(sorted(of_fit))}"
        )
    reading = {name: options.pop(name) for name in list(options) if name in of_fit}
    return DynAEsti(model, **options).fit(data, model=model_column, **reading)


def validate(data: Any, **reading: Any) -> Validation:
    """Look at a table of answers before fitting: what can be used, and what needs attention.

    The same findings as those of ``dynaesti validate``.

    Parameters
    ----------
    data : frame, path, mapping of columns, iterable of dicts or Responses
    **reading
        How to read it, see `Responses.read`.

    Returns
    -------
    Validation
        Prints as sentences; `needs_attention` says whether something deserves a look.

    Raises
    ------
    ResponseError
        If the table cannot be used as it is.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=12, items=5, per_person=12, seed=1).table
    >>> found = dy.validate(table)
    >>> found.needs_attention, found.report.people
    (False, 12)
    >>> print(str(found).splitlines()[-1])
    Usable, nothing special.
    """
    return Validation.of(Responses.read(data, **{"timeless": True, **reading}))
