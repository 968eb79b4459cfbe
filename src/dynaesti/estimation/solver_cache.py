"""A cache of solvers for chunks of people, kept between E-steps while memory allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dynaesti.core import Ints
from dynaesti.estimation.site_layout import PeopleSites
from dynaesti.inference import Solver, build_batched_solver
from dynaesti.model import Kernel

MAX_KEPT = 60_000_000  # numbers in all solvers together


class SolverCache:
    """Builds the solver of a chunk when it is first needed, and keeps it.

    Parameters
    ----------
    sites : PeopleSites
    curve_chunks : mapping of bool to sequence of arrays
        The chunks of people where instants are merged (True) and where they are not (False).
    """

    def __init__(self, sites: PeopleSites, curve_chunks: Mapping[bool, Sequence[Ints]]) -> None:
        self.sites = sites
        self.curve_chunks = curve_chunks
        self._solvers: dict[tuple[Kernel, int, bool], Solver] = {}
        self._size = 0

    def get(self, kernel: Kernel, number: int, merges: bool) -> Solver:
        """The solver of the chunk with this number under a kernel, for merged instants or not."""
        found = self._solvers.get((kernel, number, merges))
        if found is not None:
            return found
        people = self.curve_chunks[merges][number]
        layout = self.sites.merged_if(merges)
        where = layout.curve_slice(people)
        starts = layout.site_start[people[0] : people[-1] + 2] - where.start
        first, last = self.sites.layout.spans
        solver = build_batched_solver(
            kernel, layout.times[where], starts, first[people], last[people]
        )
        if self._size + solver.size <= MAX_KEPT:
            self._size += solver.size
            self._solvers[kernel, number, merges] = solver
        return solver

    def keep_only(self, kernels: Sequence[Kernel]) -> None:
        """Drop the solvers of all other kernels."""
        self._solvers = {key: solver for key, solver in self._solvers.items() if key[0] in kernels}
        self._size = sum(solver.size for solver in self._solvers.values())
