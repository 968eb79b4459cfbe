"""Scorers as column operations of Polars and DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaesti.results.scoring.columns import ABILITY

if TYPE_CHECKING:
    from dynaesti.results.scoring.scorer import Scorer


class PolarsScorer:
    """Expressions of Polars that change and read a column of states; made by `Scorer.polars`.

    Parameters
    ----------
    scorer : Scorer

    Examples
    --------
    >>> import dynaesti as dy
    >>> import polars as pl
    >>> table = dy.simulate.responses(people=12, items=5, per_person=12, seed=1).table
    >>> scorer = dy.DynAEsti("2PL").fit(table).scorer()
    >>> new = pl.DataFrame({"id": ["a", "b", "a"], "time": [50.0, 50.0, 51.0],
    ...                     "item": ["i1", "i1", "i2"], "resp": [1, 0, 1]})
    >>> answers = new.sort("time").group_by("id", maintain_order=True).all()
    >>> states = answers.with_columns(state=scorer.polars.add(None, "time", "item", "resp"))
    >>> abilities = states.select("id", scorer.polars.ability("state").struct.unnest())
    >>> abilities.columns
    ['id', 'mean', 'sd', 'lower', 'upper']
    """

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer

    def add(
        self, state: Any, time: Any, item: Any, resp: Any, weight: Any = None, **columns: Any
    ) -> Any:
        """States after answers, as a column of bytes.

        Parameters
        ----------
        state : column or None
            States as bytes; null, or None for all, of someone of whom nothing is known.
        time, item, resp, weight : column
            One answer a row, or lists of answers in the order of their times.
        **columns : column
            Those that the fit's effects need.

        Returns
        -------
        polars.Expr
        """
        import polars as pl

        named = {"time": time, "item": item, "resp": resp}
        named |= {} if weight is None else {"weight": weight}
        asked = {"": pl.lit(None, pl.Binary) if state is None else state, **named, **columns}
        struct = pl.struct(**{f"c{k}": _expression(one) for k, one in enumerate(asked.values())})

        def follow(rows: Any) -> Any:
            found = [_values(rows.struct.field(f"c{k}")) for k in range(len(asked))]
            given = dict(zip(asked, found, strict=True))
            states = given.pop("")
            beside = {name: given.pop(name) for name in columns}
            weights = given.pop("weight", None)
            answers = (given["time"], given["item"], given["resp"])
            after = self._scorer.add_column(states, *answers, weights, **beside)
            return pl.Series(after, dtype=pl.Binary)

        return struct.map_batches(follow, return_dtype=pl.Binary)

    def ability(self, state: Any, at: Any = None, *, level: float = 0.7) -> Any:
        """Mean, sd, lower and upper of ability, as a column of structs.

        Parameters
        ----------
        state : column
            States as bytes.
        at : column or time, optional
            Default: the times of the last answers.
        level : float, default 0.7
            Probability of the band.

        Returns
        -------
        polars.Expr
        """
        import polars as pl

        shape = pl.Struct(dict.fromkeys(ABILITY, pl.Float64))
        asked = pl.struct(c0=_expression(state), **({} if at is None else {"c1": _at(at)}))

        def tell(rows: Any) -> Any:
            states = rows.struct.field("c0").to_list()
            when = None if at is None else rows.struct.field("c1").to_numpy()
            found = self._scorer.ability_column(states, when, level=level)
            return pl.DataFrame(found).to_struct()

        return asked.map_batches(tell, return_dtype=shape)


def _expression(column: Any) -> Any:
    import polars as pl

    return pl.col(column) if isinstance(column, str) else column


def _at(at: Any) -> Any:
    """A column, or one time for all."""
    import polars as pl

    return at if isinstance(at, pl.Expr) else pl.col(at) if isinstance(at, str) else pl.lit(at)


def _values(column: Any) -> Sequence[Any]:
    """Values of a Polars column; times as NumPy has them."""
    if column.dtype.is_temporal():
        found: Any = column.to_numpy()
        return list(found)
    if column.dtype.is_nested():
        return [None if one is None else _values(one) for one in column]
    values: list[Any] = column.to_list()
    return values


def register(scorer: Scorer, connection: Any, prefix: str) -> None:
    """Make a scorer's functions in a DuckDB connection: see `Scorer.register`."""
    from duckdb.sqltypes import BLOB, DOUBLE, TIMESTAMP, VARCHAR

    time = TIMESTAMP if scorer.template.axis.stamps else DOUBLE
    labels = {str(one): one for one in scorer.item_labels.tolist()}
    many = {"type": "arrow", "null_handling": "special"}

    def known(cell: Any) -> Any:
        return [*map(known, cell)] if isinstance(cell, list) else labels.get(cell, cell)

    def add(states: Any, times: Any, items: Any, resps: Any) -> Any:
        import pyarrow as pa

        given = (_times(times.to_pylist()), known(items.to_pylist()), resps.to_pylist())
        after = scorer.add_column(states.to_pylist(), *given)
        return pa.array(after, pa.binary())

    def ability(states: Any) -> Any:
        import pyarrow as pa

        found = scorer.ability_column(states.to_pylist())
        return pa.StructArray.from_arrays(
            [pa.array(x, pa.float64()) for x in found.values()], list(found)
        )

    def listed(kind: Any) -> Any:
        return connection.list_type(kind)

    shape = connection.struct_type(dict.fromkeys(ABILITY, DOUBLE))
    connection.create_function(f"{prefix}_add", add, [BLOB, time, VARCHAR, DOUBLE], BLOB, **many)
    lists = [BLOB, *(connection.list_type(kind) for kind in (time, VARCHAR, DOUBLE))]
    connection.create_function(f"{prefix}_follow", add, lists, BLOB, **many)
    connection.create_function(f"{prefix}_ability", ability, [BLOB], shape, **many)


def _times(cell: Any) -> Any:
    """Times of Arrow's lists, those of dates as NumPy has them."""
    if isinstance(cell, list):
        return [*map(_times, cell)]
    return np.datetime64(cell, "us") if hasattr(cell, "isoformat") else cell
