"""Which solver suits which kernel, and how it is built."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from dynaesti.core import Array, Ints
from dynaesti.errors import InputError
from dynaesti.inference.solvers.basis import (
    Basis,
    DenseBasis,
    expected_rank,
    ragged_features,
    with_effects,
)
from dynaesti.inference.solvers.contract import Posterior, Solver, SolverName
from dynaesti.inference.solvers.level_matern32 import level_matern32_form, level_matern32_solver
from dynaesti.inference.solvers.state_space import (
    StateSpacePosterior,
    batched_state_space,
    is_markov,
    pack_state_space,
    state_space_model,
)
from dynaesti.inference.solvers.weight_space import (
    DenseSolver,
    LowRankSolver,
    WeightPosterior,
    lowrank_basis,
    pack_features,
)
from dynaesti.model import AnswerKernel, Kernel, effect_sds

MOST_RANK = 3000
MOST_DENSE = 4000  # instants of a dense solver
FEW_FEATURES = 12  # up to so many are cheap, even if there are fewer instants
# number of features up to which many short curves share one compiled call
PACKED = 150


def choose_solver(
    kernel: Kernel, count: int, span: float, forced: SolverName | None = None
) -> SolverName:
    """The cheapest solver that is exact for a kernel at `count` instants over a span.

    Parameters
    ----------
    kernel : Kernel
    count : int
        Number of instants.
    span : float
        Time from the first to the last.
    forced : {"lowrank", "statespace", "dense"}, optional
        Take this solver instead.

    Raises
    ------
    InputError
        If the forced solver does not suit the kernel, or the bandwidth is too short for the span.
    """
    if forced == "lowrank" and not kernel.low_rank:
        raise InputError(
            f"solver: {kernel.describe()} has no low-rank form; use 'statespace' or 'dense'"
        )
    sees_more = any(isinstance(summand, AnswerKernel) for summand in kernel.summands)
    if sees_more and forced == "statespace":
        raise InputError(
            "solver: 'statespace' knows neither effects nor noise; leave it out, or use 'dense'"
        )
    if forced is not None:
        return forced
    if sees_more and not kernel.low_rank:
        if count > MOST_DENSE:
            raise InputError(
                f"kernel: noise and effects beside {kernel.describe()} need every pair of "
                f"{count:,} emissions, and {MOST_DENSE:,} is the most; use RBF, Level, Trend or "
                "Periodic"
            )
        return "dense"
    if kernel.low_rank and count > MOST_DENSE and expected_rank(kernel, span) > MOST_RANK:
        raise InputError(
            f"bandwidth: {kernel.describe()} is too short for times that span {span:.3g} (about "
            f"{expected_rank(kernel, span):.0f} features, {MOST_RANK} at most); give a longer "
            f"one, or use Matern32, "
            "whose cost does not depend on it"
        )
    if kernel.low_rank:  # features save no time unless they are fewer than the instants
        return (
            "dense"
            if count <= MOST_DENSE and expected_rank(kernel, span) > max(0.8 * count, FEW_FEATURES)
            else "lowrank"
        )
    return "dense" if count <= 24 else "statespace"


def build_solver(
    name: SolverName,
    kernels: Sequence[Kernel],
    instants: Sequence[Array],
    columns: Array | None = None,
) -> Solver:
    """One solver for several curves, each with its kernel and instants.

    `columns` (n_sites, n_columns) are those of effects, the same for all curves.
    """
    if name == "statespace":
        counts = np.array([t.size for t in instants])
        chains = [
            state_space_model(k, t, (float(t.min()), float(t.max())))
            for k, t in zip(kernels, instants, strict=True)
        ]
        return pack_state_space(chains, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))
    bases = [
        _at_sites(_basis(name, k, t), k, t, columns) for k, t in zip(kernels, instants, strict=True)
    ]
    if name == "lowrank":
        return pack_features(bases)
    return DenseSolver(
        bases, np.concatenate([[0], np.cumsum([t.size for t in instants])]).astype(np.int64)
    )


def state_dimensions(name: SolverName, kernel: Kernel, ends: Array) -> tuple[int, int]:
    """(moving states, all states) of a kernel's Markov chain; zeros for other solvers.

    Only chains with equal dimensions can share a solver.
    """
    if name != "statespace":
        return 0, 0
    chain = state_space_model(kernel, ends, (float(ends[0]), float(ends[-1])))
    return chain.transition.shape[1], chain.start.shape[0]


def build_batched_solver(
    kernel: Kernel,
    times: Array,
    starts: Ints,
    first: Array,
    last: Array,
    forced: SolverName | None = None,
) -> Solver:
    """One solver for many curves under the same kernel.

    Curve j has the times ``times[starts[j]:starts[j + 1]]``; its features cover its own data,
    ``first[j]`` to ``last[j]``.
    """
    packed = (
        kernel.low_rank
        and not depends_on_span(kernel)
        and forced is None
        and expected_rank(kernel, float((last - first).max())) < PACKED
    )
    if is_markov(kernel) and forced in (None, "statespace"):
        form = level_matern32_form(kernel)
        return (
            batched_state_space(kernel, times, starts)
            if form is None
            else level_matern32_solver(form, times, starts)
        )
    name = (
        "lowrank"
        if packed
        else choose_solver(kernel, int(np.diff(starts).max()), float((last - first).max()), forced)
    )
    if name == "lowrank" and not depends_on_span(kernel):
        return LowRankSolver(*ragged_features(kernel, times, starts, first, last))
    kernels = [kernel.anchored(float(a), float(b)) for a, b in zip(first, last, strict=True)]
    return build_solver(name, kernels, [times[a:b] for a, b in pairwise(starts)])


def depends_on_span(kernel: Kernel) -> bool:
    """Whether the kernel depends on where a curve's data lie."""
    return kernel.anchored(0.0, 1.0) != kernel


def build_posterior(
    name: SolverName,
    kernel: Kernel,
    instants: Array,
    precision: Array,
    shift: Array,
    columns: Array | None = None,
) -> Posterior:
    """The posterior of one curve given its latent sites (precision and shift, (n_sites,) each).

    `columns` (n_sites, n_columns) are those of effects, where there are any.
    """
    if name == "statespace":
        return StateSpacePosterior(kernel, instants, precision, shift)
    basis = _basis(name, kernel, instants)
    at_sites = _at_sites(basis, kernel, instants, columns)
    return WeightPosterior(kernel, basis, at_sites, precision, shift)


def _basis(name: SolverName, kernel: Kernel, instants: Array) -> Basis:
    """The features of a kernel at some instants, for the named solver."""
    if name == "lowrank":
        return with_effects(lowrank_basis(kernel, instants), kernel)
    distinct = instants if (np.diff(instants) > 0).all() else np.unique(instants)
    return with_effects(DenseBasis(kernel, distinct), kernel)


def _at_sites(basis: Basis, kernel: Kernel, instants: Array, columns: Array | None) -> Array:
    """Features at the sites, where emissions see effects too."""
    out = basis.features(instants)
    if columns is not None:
        sds = effect_sds(kernel)
        out[:, out.shape[1] - sds.size :] = columns * sds
    return out
