"""Marginals of many grafted curves at any times: each curve may be asked at times of its own."""

import numpy as np

from dynaesti.core import Array, Ints, chunks, jit, run_in_threads
from dynaesti.inference.solvers.choice import (
    build_batched_solver,
    build_posterior,
    choose_solver,
    depends_on_span,
)
from dynaesti.inference.solvers.contract import SolverName
from dynaesti.inference.solvers.state_space import is_markov
from dynaesti.inference.solvers.weight_space import LowRankSolver
from dynaesti.model import Kernel


def predict_marginals(
    kernel: Kernel,
    times: Array,
    starts: Ints,
    span: tuple[Array, Array],
    precision: Array,
    shift: Array,
    asked: Array,
    asked_start: Ints,
    solver: SolverName | None = None,
    threads: int | None = None,
) -> tuple[Array, Array]:
    """Mean and variance of curve j at asked[asked_start[j]:asked_start[j + 1]], for all j, flat.

    Curve j has sites (precision, shift) as seen by the curve at times[starts[j]:starts[j + 1]]; its
    data span first[j] to last[j].
    """
    rising = np.lexsort((asked, np.repeat(np.arange(starts.size - 1), np.diff(asked_start))))
    first, last, asked = *span, asked[rising]
    means = np.empty(asked.size)
    variances = np.empty(asked.size)
    packed = (
        not depends_on_span(kernel)
        and choose_solver(kernel, int(np.diff(starts).max()), float((last - first).max()), solver)
        == "lowrank"
    )

    def one_by_one(curves: Ints) -> None:
        for c in curves:
            want = slice(asked_start[c], asked_start[c + 1])
            have = slice(starts[c], starts[c + 1])
            if asked_start[c] == asked_start[c + 1]:
                continue
            placed = kernel.anchored(float(first[c]), float(last[c]))
            name = choose_solver(
                placed, int(starts[c + 1] - starts[c]), float(last[c] - first[c]), solver
            )
            given = build_posterior(name, placed, times[have], precision[have], shift[have])
            means[want], variances[want] = given.marginals(asked[want])

    def together(curves: Ints) -> None:
        """The times asked for join each curve's sites as ones that say nothing."""
        a = curves[0]
        b = curves[-1] + 1
        have = np.diff(starts[a : b + 1])
        want = np.diff(asked_start[a : b + 1])
        joint = np.concatenate([[0], np.cumsum(have + want)]).astype(np.int64)
        is_asked = np.zeros(joint[-1], dtype=bool)
        is_asked[_last_of(joint, want)] = True
        t = np.empty(joint[-1])
        tau = np.zeros(joint[-1])
        nu = np.zeros(joint[-1])
        mine = slice(asked_start[a], asked_start[b])
        seen = slice(starts[a], starts[b])
        t[is_asked] = asked[mine]
        t[~is_asked] = times[seen]
        tau[~is_asked] = precision[seen]
        nu[~is_asked] = shift[seen]
        mean = np.empty(joint[-1])
        var = np.empty(joint[-1])
        size = np.empty(curves.size)
        proper = np.ones(curves.size, dtype=bool)
        if packed:
            prior = build_batched_solver(kernel, t, joint, first[curves], last[curves], "lowrank")
            assert isinstance(prior, LowRankSolver)
            prior.marginals(np.arange(curves.size), tau, nu, mean, var, size, proper)
            rest = (
                np.broadcast_to(kernel.cov(asked[mine], asked[mine]), asked[mine].shape)
                - prior.squares()[is_asked]
            )
            means[mine] = mean[is_asked]
            variances[mine] = var[is_asked] + np.maximum(rest, 0.0)
            return
        order = np.empty(joint[-1], dtype=np.int64)
        _merge(t, joint, have, order)  # chains go forward in time
        chain = build_batched_solver(
            kernel, t[order], joint, first[curves], last[curves], "statespace"
        )
        found = np.empty((2, joint[-1]))
        chain.marginals(np.arange(curves.size), tau[order], nu[order], mean, var, size, proper)
        found[:, order] = mean, var
        means[mine], variances[mine] = found[:, is_asked]

    at_once = packed or (is_markov(kernel) and solver in (None, "statespace"))
    run_in_threads(together if at_once else one_by_one, chunks(starts + asked_start), threads)
    out = np.empty((2, asked.size))
    out[:, rising] = means, variances
    return out[0], out[1]


@jit
def _merge(t: Array, start: Ints, have: Ints, order: Ints) -> None:
    """The rising order of each run start[j]:start[j + 1], whose first have[j] entries rise, and the
    others after them too.
    """
    for j in range(have.size):
        site = start[j]
        middle = start[j] + have[j]
        end = start[j + 1]
        ask = middle
        for k in range(start[j], end):
            if ask == end or (site < middle and t[site] <= t[ask]):
                order[k] = site
                site += 1
            else:
                order[k] = ask
                ask += 1


def _last_of(joint: Ints, want: Ints) -> Ints:
    """Places of the last want[j] entries of each run joint[j]:joint[j + 1]."""
    begin = joint[1:] - want
    return np.asarray(np.arange(want.sum()) + np.repeat(begin - (np.cumsum(want) - want), want))
