"""One person's curve under one prior, kept settled as answers come in: in features, or gliding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from dynaesti.core import Array, Ints
from dynaesti.errors import InputError
from dynaesti.inference.grafting import EPProblem, graft
from dynaesti.inference.moments.match import match_sites
from dynaesti.inference.online.kernels import Members, update_level_matern32, update_low_rank
from dynaesti.inference.sites import through_nugget
from dynaesti.inference.solvers.basis import Basis, expected_rank, kernel_basis
from dynaesti.inference.solvers.choice import MOST_RANK
from dynaesti.inference.solvers.contract import Solver
from dynaesti.inference.solvers.level_matern32 import (
    LevelMatern32Form,
    level_matern32_form,
    level_matern32_solver,
)
from dynaesti.inference.solvers.state_space import StateSpacePosterior
from dynaesti.inference.solvers.weight_space import (
    WeightPosterior,
    lowrank_at,
    lowrank_weights,
    pack_features,
)
from dynaesti.model import Kernel, Level

TOLERANCE = 2e-7
EMPTY_SITE = np.array(
    [0.0, 0.0, *10 * [np.nan]]
)  # says nothing yet; its moments are to be integrated


@dataclass(frozen=True, eq=False)
class OnlineLowRank:
    """A curve in features (rank, sites), and the posterior of its weights.

    A constant curve has one site for all answers.
    """

    kernel: Kernel
    basis: Basis
    features: Array
    memory: Array  # of the sites, see regraft
    factor: Array  # L⁻¹ of the weights' precision
    weights: Array
    log_evidence: float = 0.0

    def grown(self, times: Array, place: int) -> OnlineLowRank:
        """Room for one instant more."""
        if self.kernel.static:
            return self
        return OnlineLowRank(
            self.kernel,
            self.basis,
            _insert(self.features, place, self.basis.features(times[place : place + 1])[0]),
            _insert(self.memory, place, EMPTY_SITE),
            self.factor,
            self.weights,
        )

    def settled(self, members: Members, changed: int | None) -> OnlineLowRank:
        """Grafting from the present sites, of which one has changed (None: any may have)."""
        if self.kernel.static:
            members = members._replace(group=members.group[-1:] + 1)
            changed = None if changed is None else 0
        memory = _touched(self.memory, changed)
        factor = self.factor.copy()
        weights = self.weights.copy()
        nugget = np.array([self.kernel.nugget_variance])
        done, evidence = update_low_rank(
            self.features,
            nugget,
            -1 if changed is None else changed,
            members,
            memory,
            factor,
            weights,
            TOLERANCE,
        )
        if not done:
            evidence = _grafted(
                pack_features([self.features.T]), members, nugget, self.memory, memory
            )
            lowrank_weights(
                self.features,
                *through_nugget(memory[0], memory[1], self.kernel.nugget_variance),
                factor,
                weights,
            )
            lowrank_at(self.features, factor, weights, memory[2], memory[3])
        return OnlineLowRank(
            self.kernel, self.basis, self.features, memory, factor, weights, evidence
        )

    def marginals(self, times: Array, asked: Array) -> tuple[Array, Array]:  # noqa: ARG002
        """Mean and variance at the times asked for."""
        tau, nu = through_nugget(self.memory[0], self.memory[1], self.kernel.nugget_variance)
        return WeightPosterior(self.kernel, self.basis, self.features.T, tau, nu).marginals(asked)


@dataclass(frozen=True, eq=False)
class OnlineLevelMatern32:
    """A level plus Matérn 3/2 at rising instants."""

    kernel: Kernel
    form: LevelMatern32Form
    times: Array
    memory: Array
    log_evidence: float = 0.0

    def grown(self, times: Array, place: int) -> OnlineLevelMatern32:
        """Room for one instant more."""
        return OnlineLevelMatern32(
            self.kernel, self.form, times, _insert(self.memory, place, EMPTY_SITE)
        )

    def settled(self, members: Members, changed: int | None) -> OnlineLevelMatern32:
        """Grafting from the present sites, of which one has changed (None: any may have)."""
        memory = _touched(self.memory, changed)
        form = self.form
        nugget = np.array([self.kernel.nugget_variance])
        solver = level_matern32_solver(form, self.times, np.array([0, self.times.size]))
        done, evidence = update_level_matern32(
            solver.gaps,
            solver.decay,
            form.rate,
            form.variance,
            form.level,
            nugget,
            -1 if changed is None else changed,
            members,
            memory,
            TOLERANCE,
        )
        if not done:
            evidence = _grafted(solver, members, nugget, self.memory, memory)
        return OnlineLevelMatern32(self.kernel, form, self.times, memory, evidence)

    def marginals(self, times: Array, asked: Array) -> tuple[Array, Array]:
        """Mean and variance at the times asked for."""
        tau, nu = through_nugget(self.memory[0], self.memory[1], self.kernel.nugget_variance)
        return StateSpacePosterior(self.kernel, times, tau, nu).marginals(asked)


OnlineCurve: TypeAlias = OnlineLowRank | OnlineLevelMatern32


def start_online(
    kernel: Kernel, times: Array, horizon: tuple[float, float], precision: Array, shift: Array
) -> OnlineCurve:
    """A curve with given sites, not yet settled; features reach over the horizon."""
    memory = np.repeat(EMPTY_SITE[:, None], precision.size, axis=1)
    memory[0] = precision
    memory[1] = shift
    form = level_matern32_form(kernel)
    if form is not None:
        return OnlineLevelMatern32(kernel, form, times, memory)
    if kernel.static:
        kernel = Level(
            amplitude=float(np.sqrt(sum(summand.variance for summand in kernel.summands)))
        )
    if not kernel.static and expected_rank(kernel, horizon[1] - horizon[0]) > MOST_RANK:
        raise InputError(
            f"live: answers that span {horizon[1] - horizon[0]:.3g} need too many features of "
            f"{kernel.describe()}; use "
            "update(frame), or a kernel with Matern32"
        )
    basis = kernel_basis(kernel, *horizon)
    features = basis.features(times[:1] if kernel.static else times)
    return OnlineLowRank(
        kernel,
        basis,
        np.ascontiguousarray(features.T),
        memory,
        np.empty((basis.rank, basis.rank)),
        np.empty(basis.rank),
    )


def _insert(table: Array, place: int, column: Array) -> Array:
    """A table with one column more."""
    rows, n = table.shape
    out = np.empty((rows, n + 1))
    out[:, :place] = table[:, :place]
    out[:, place] = column
    out[:, place + 1 :] = table[:, place:]
    return out


def _touched(memory: Array, changed: int | None) -> Array:
    """A copy, in which the changed site's moments are to be integrated anew."""
    out = memory.copy()
    out[4:, slice(None) if changed is None else changed] = np.nan
    return out


def _grafted(solver: Solver, members: Members, nugget: Array, start: Array, memory: Array) -> float:
    """The slow way, for curves that do not follow at once.

    Fills the sites, returns the log evidence.
    """

    def match(
        sites: Ints, cavity_mean: Array, cavity_var: Array, log_z: Array, mean: Array, var: Array
    ) -> None:
        if match_sites(sites, *members, cavity_mean, cavity_var, log_z, mean, var) >= 0:
            raise InputError(
                "the answers at one instant are impossible at every ability; check the responses"
            )

    flat = np.zeros(memory.shape[1])
    found = graft(
        EPProblem(solver, match, flat, flat, nugget, np.ones(flat.size, dtype=bool)),
        (start[0], start[1]),
        TOLERANCE,
    )
    memory[0] = found.precision
    memory[1] = found.shift
    memory[4:] = np.nan
    return float(found.log_evidence[0])
