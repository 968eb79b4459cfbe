"""Checks of a saved fit before anything computes with it.

Compiled loops trust every index, order and shape that they are given. All checks raise ValueError,
which `load` turns into an error that names the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynaesti.core import Array, check_array, is_number, require
from dynaesti.data import KINDS, Labels
from dynaesti.estimation import (
    REACH,
    ItemDrift,
    ItemNodes,
    IterationRecord,
    PeopleSites,
    PriorMixture,
    ResponseCoding,
)
from dynaesti.inference import EPResult
from dynaesti.model import ItemBank, ItemBlock, Kernel

SUM = 1e-6  # by which the sum of weights may differ from 1


def check_labels(labels: Labels, what: str) -> None:
    """Labels must be distinct, and of kinds that can be saved."""
    fine = (
        isinstance(labels, np.ndarray)
        and labels.ndim == 1
        and labels.size
        and labels.dtype.kind in "iufbMO"
    )
    require(fine, f"the names of {what} are malformed")
    require(len(set(labels.tolist())) == labels.size, f"the names of {what} are not distinct")


def check_population(kernels: Sequence[Kernel], population: Array) -> None:
    """Weights of the kernels in the population must add up to 1."""
    check_array(population, (len(kernels),), "the priors' shares")
    require(
        population.min(initial=0.0) >= 0 and abs(population.sum() - 1) < SUM,
        "the priors' shares do not add up to 1",
    )


def check_items(bank: ItemBank, coding: ResponseCoding, items: int) -> None:
    """Rows of blocks must follow each other, and every item be in one block.

    Categories of responses must be those of their items.
    """
    require(
        bank.blocks
        and all(
            isinstance(v, float) and np.isfinite(v)
            for v in (bank.ability_scale.location, bank.ability_scale.log_scale)
        ),
        "no items",
    )
    row = 0
    for block in bank.blocks:
        _check_block(block, items, row)
        row = block.end_row
    met = np.sort(np.concatenate([block.items for block in bank.blocks]))
    require(np.array_equal(met, np.arange(items)), "items are missing, or listed twice")
    values = coding.values
    check_array(values, (values.size,), "the responses' values")
    require(np.all(np.diff(values) > 0), "the responses' values do not rise")
    check_array(coding.table, (items, values.size), "the table of categories", "i")
    for block in bank.blocks:
        most = block.depth if block.model.has_value_rows else 0
        mine = coding.table[block.items]
        require(
            mine.min(initial=-1) >= -1 and mine.max(initial=-1) < max(most, 1),
            "responses have categories that their items lack",
        )


def _check_block(block: ItemBlock, items: int, row: int) -> None:
    count = block.items.size
    check_array(block.items, (count,), "a block's items", "i")
    require(
        count and type(block.size) is int and 0 <= block.size <= 1000 and block.first_row == row,
        "a block of items is misplaced",
    )
    require(
        block.items.min() >= 0 and block.items.max() < items,
        "a block has items that there are none of",
    )
    width = len(block.model.parameter_names(block.size))
    check_array(block.u, (count, width), "the items' parameters")
    check_array(block.free, (count, width), "which parameters are free", "b")
    require(
        block.prior_mean.shape == block.prior_sd.shape == (width,)
        and np.isfinite(block.prior_mean).all()
        and (block.prior_sd > 0).all(),
        "the items' priors are malformed",
    )
    require(
        block.values.ndim == 2 and len(block.values) == count and np.isfinite(block.values).all(),
        "the categories' values are malformed",
    )
    require(
        not block.model.categorical or block.values.shape[1] == block.size,
        "the categories' values are malformed",
    )


def check_covariance(
    bank: ItemBank, covariance: tuple[Array, ...] | None, shared: Array | None
) -> None:
    """Covariances of the items' parameters must have the shapes of the blocks.

    With one parameter more for the unit of ability, where that is known.
    """
    for block, cov in zip(bank.blocks, covariance or (), strict=covariance is not None):
        width = block.u.shape[1]
        require(
            cov.ndim == 3
            and cov.shape[0] == block.items.size
            and cov.shape[1] == cov.shape[2]
            and cov.shape[1] in (width, width + 1)
            and cov.dtype.kind == "f",
            "the items' covariances are malformed",
        )
    require(
        shared is None or (shared.shape == (2, 2) and np.isfinite(shared).all()),
        "the items' covariances are malformed",
    )


def check_item_nodes(bank: ItemBank, nodes: Sequence[ItemNodes] | None) -> None:
    """Weighted points of the items must have the shapes of the blocks, and be finite."""
    for block, one in zip(bank.blocks, nodes or (), strict=nodes is not None):
        require(
            one.u.ndim == 3
            and one.u.shape[1:] == block.u.shape
            and one.weights.shape == one.u.shape[:2]
            and np.isfinite(one.u).all()
            and np.isfinite(one.weights).all()
            and bool((one.weights >= 0).all()),
            "the items' weighted points are malformed",
        )


def check_item_drift(drift: ItemDrift, n_items: int) -> None:
    """Entries of the items' drift must have their shapes, be finite, and lie in the periods."""
    start, periods = drift.start, drift.periods
    require(
        start.shape == (n_items + 1,)
        and start.dtype.kind == "i"
        and start[0] == 0
        and bool((np.diff(start) >= 0).all())
        and type(periods.number) is int
        and periods.number > 0
        and np.isfinite([periods.first, periods.last]).all()
        and periods.last > periods.first
        and bool(((drift.period >= 0) & (drift.period < periods.number)).all())
        and 0 < drift.variance < np.inf
        and 0 < drift.timescale < np.inf,
        "the items' drift is malformed",
    )
    for name, kind in (("period", "i"), ("seen", "f"), ("noise", "f")):
        check_array(getattr(drift, name), (int(start[-1]),), "the items' drift", kind)
    for name in ("level", "level_variance"):
        check_array(getattr(drift, name), (n_items,), "the items' drift")
    require(
        bool((drift.noise > 0).all() and (drift.level_variance >= 0).all()),
        "the items' drift is malformed",
    )


def check_options(options: Mapping[str, Any], scales: Sequence[str]) -> None:
    """Options that a fit needs after opening must be sensible."""
    require(
        isinstance(options, dict) and options.get("scale") in scales, "the options are malformed"
    )
    far = options.get("farthest")
    threads = options.get("threads")
    require(isinstance(far, int | float) and 0 <= far <= 2 * REACH[-1], "the options are malformed")
    require(threads is None or (type(threads) is int and threads >= 1), "the options are malformed")


def check_trace(trace: Sequence[IterationRecord]) -> None:
    """Records of iterations must be numbers, with the name of a stage."""
    for record in trace:
        fine = isinstance(record.stage, str) and all(
            is_number(value) for name, value in vars(record).items() if name != "stage"
        )
        require(fine, "the trace is malformed")


def check_reading(reading: Mapping[str, Any]) -> None:
    """Clock, unit, notes and columns of the responses must be well formed."""
    fine = (
        type(reading["dropped"]) is int
        and isinstance(reading["unit"], str)
        and reading["clock"] in ("calendar", "person")
    )
    require(fine, "the clock is malformed")
    require(
        reading["frame"] in (None, *KINDS)
        and all(isinstance(note, str) for note in reading["notes"]),
        "the notes are malformed",
    )
    require(
        isinstance(reading["columns"], dict)
        and all(isinstance(name, str | None) for name in reading["columns"].values()),
        "no columns",
    )


def check_ep(
    ep: Sequence[EPResult], priors: PriorMixture, sites: PeopleSites, weights: Array
) -> None:
    """Sites and kernel weights of everyone must have the right shapes and ranges."""
    n_people = sites.n_people
    for result, kernel in zip(ep, priors.kernels, strict=True):
        shape = (sites.for_kernel(kernel, priors).n_sites,)
        for part in (*result.sites, *result.cavity, result.log_z):
            check_array(part, shape, "sites and cavities of the curves")
        check_array(result.log_evidence, (n_people,), "the curves' evidence")
        check_array(result.converged, (n_people,), "which curves converged", "b")
        require((result.cavity.variance > 0).all(), "the curves' cavities are malformed")
    check_array(weights, (len(priors.kernels), n_people), "the kernels' weights")
    require(
        weights.min(initial=0.0) >= 0 and np.abs(weights.sum(axis=0) - 1).max(initial=0.0) < SUM,
        "the kernels' weights do not add up to 1",
    )
