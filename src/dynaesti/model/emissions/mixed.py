"""Several families on one curve, and emissions from any input."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dynaesti.core import Array, Ints
from dynaesti.errors import EmissionError, InputError
from dynaesti.model.emissions.base import Emissions
from dynaesti.model.emissions.families import (
    Bernoulli,
    Binomial,
    Gaussian,
    NegativeBinomial,
    Ordinal,
    Poisson,
    StudentT,
)
from dynaesti.model.emissions.item_responses import ItemResponses
from dynaesti.model.emissions.tables import Functions, Table
from dynaesti.model.links import LinkedPoints


class Mixed(Emissions):
    """Emissions of several kinds, one after the other."""

    kind = "mixed"

    def __init__(self, parts: Sequence[Emissions]) -> None:
        self.parts = tuple(parts)
        self.starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(
            np.int64
        )

    def __len__(self) -> int:
        return int(self.starts[-1])

    def _split(self, rows: Ints) -> Iterator[tuple[Emissions, Ints, Ints]]:
        """Split indices by parts: each part, indices within the part, and positions in `rows`."""
        owner = np.searchsorted(self.starts, rows, side="right") - 1
        for k, part in enumerate(self.parts):
            where = np.flatnonzero(owner == k)
            if where.size:
                yield part, rows[where] - self.starts[k], where

    def log_prob(self, at: LinkedPoints, rows: Ints) -> Array:
        out = np.empty_like(at.x)
        for part, inner, where in self._split(rows):
            out[where] = part.log_prob(LinkedPoints(at.x[where], at.link), inner)
        return out

    def unique_index(self) -> Ints | None:
        firsts = [part.unique_index() for part in self.parts]
        if any(first is None for first in firsts):
            return None
        return np.concatenate(
            [
                first + start
                for first, start in zip(firsts, self.starts, strict=False)
                if first is not None
            ]
        )

    def take(self, rows: Ints) -> Emissions:
        # in sorted order each kind stays in one piece
        return Mixed([part.take(inner) for part, inner, _ in self._split(np.sort(rows))])

    def plot_values(self) -> Array | None:
        values = [part.plot_values() for part in self.parts]
        if any(value is None for value in values):
            return None
        return np.concatenate([value for value in values if value is not None])


FAMILIES: dict[str, type[Any]] = {
    cls.kind: cls
    for cls in (
        Bernoulli,
        Binomial,
        Poisson,
        NegativeBinomial,
        Gaussian,
        StudentT,
        Ordinal,
        ItemResponses,
        Table,
    )
}


def as_emissions(given: Any) -> Emissions:
    """Emissions from a family, a function, or a list of either.

    Parameters
    ----------
    given : Emissions, callable log f(y), or sequence of these
        The entries of a sequence follow each other.

    Returns
    -------
    Emissions
        One family, `Functions`, or `Mixed`.

    Raises
    ------
    InputError
        If an entry is neither a family nor a function.
    """
    if isinstance(given, Emissions):
        return given
    if isinstance(given, type):
        raise InputError(
            f"emissions: {given.__name__} is a class; give it the observations: {given.__name__}(…)"
        )
    if callable(given):
        return Functions([given])
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise InputError(
            "emissions: expected a family such as Bernoulli(votes), or a list of functions; got "
            f"{type(given).__name__}"
        )
    parts: list[Emissions] = []
    run: list[Callable[[Array], Any]] = []
    for k, part in enumerate(given):
        if callable(part) and not isinstance(part, Emissions):
            run.append(part)
            continue
        if not isinstance(part, Emissions):
            raise InputError(
                f"emissions: entry {k} is {type(part).__name__}, neither a family nor a function"
            )
        if run:
            parts.append(Functions(run))
            run = []
        parts.extend(part.parts if isinstance(part, Mixed) else [part])
    if run:
        parts.append(Functions(run))
    return parts[0] if len(parts) == 1 else Mixed(parts)


def emission_blocks(emissions: Emissions) -> tuple[tuple[Emissions, slice], ...]:
    """Each kind of emissions with the slice of observations that it covers."""
    if not isinstance(emissions, Mixed):
        return ((emissions, slice(0, len(emissions))),)
    return tuple(
        (part, slice(int(a), int(b)))
        for part, a, b in zip(
            emissions.parts, emissions.starts[:-1], emissions.starts[1:], strict=True
        )
    )


EVIDENCE_SLACK = 1e-3  # nats an observation that grafting may be off by


def check_evidence(emissions: Emissions, log_evidence: Array) -> None:
    """Refuse a log probability above 0.

    It is impossible where all likelihoods are probabilities: the computation has failed, and
    nothing that follows from it can be right.
    """
    slack = EVIDENCE_SLACK * (1 + len(emissions))
    if (
        all(part.discrete for part, _ in emission_blocks(emissions))
        and np.max(log_evidence, initial=-np.inf) > slack
    ):
        raise EmissionError(
            f"the log probability of these {len(emissions)} observations came out as "
            f"{np.max(log_evidence):+.3g}, which is impossible: the prior and the observations "
            "contradict each other beyond what can be computed; bring mean, amplitude and "
            "observations to one scale"
        )
