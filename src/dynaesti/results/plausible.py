"""Plausible values: abilities drawn from everyone's posterior, whole curves at a time."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dynaesti.core import Array, as_rng, check_size, whole_number
from dynaesti.data import as_list, index_of, label_text
from dynaesti.errors import InputError
from dynaesti.estimation import sample_bank
from dynaesti.inference import Marginals
from dynaesti.model import Cohort, ItemBank
from dynaesti.results.abilities import person_curve
from dynaesti.results.latent import asked_of, cohort_errors

if TYPE_CHECKING:
    from dynaesti.results.fit import Fit


class World(NamedTuple):
    """Items and a cohort as they may be."""

    bank: ItemBank
    cohort: Cohort | None


def drawn_worlds(fit: Fit, size: int, rng: np.random.Generator) -> list[World]:
    """Items and cohorts drawn from the normal distributions of their estimates."""
    if fit.covariance is None:
        raise InputError(
            "the items' standard errors were not computed; fit with standard_errors=True"
        )
    # absent in files of older versions
    shared = np.zeros((2, 2)) if fit.scale_covariance is None else fit.scale_covariance
    banks = [sample_bank(fit.bank, fit.covariance, shared, rng) for _ in range(size)]
    return [World(bank, _drawn_cohort(fit, rng)) for bank in banks]


def _drawn_cohort(fit: Fit, rng: np.random.Generator) -> Cohort | None:
    """A draw of the cohort from its estimated distribution."""
    cohort = fit.priors.cohort
    if cohort is None or cohort.covariance is None:
        return cohort
    drawn = rng.multivariate_normal(cohort.coefficients, cohort.covariance, method="eigh")
    return replace(cohort, coefficients=drawn)


def marginals_with_item_uncertainty(
    fit: Fit, label: Any, offsets: Array, draws: int, seed: int
) -> Marginals:
    """One person's ability, averaged over items and cohorts drawn from their uncertainty."""
    fit.require_people()
    who = index_of(fit.responses.people, [label], "id")
    times = fit.from_clock(offsets)
    parts = [
        person_curve(fit, who, None, world.bank, world.cohort).marginals(times)
        for world in drawn_worlds(fit, whole_number(draws, "draws", 2), as_rng(seed))
    ]
    return Marginals(
        np.concatenate([part.weights for part in parts]) / draws,
        np.concatenate([part.means for part in parts]),
        np.concatenate([part.sds for part in parts]),
    )


def plausible_curves(fit: Fit, label: Any, at: Any, size: int, seed: int | None) -> Array:
    """Curves drawn from a person's posterior, (size, n_times).

    The part that comes from the uncertain cohort is the same draw for everyone.
    """
    offsets = fit.to_clock(at)
    curves = fit.curve(label).sample(fit.from_clock(offsets), size, person_stream(seed, label))
    who = int(index_of(fit.responses.people, [label], "id")[0])
    errors = cohort_errors(fit, asked_of(np.full(offsets.size, who), offsets))
    if not errors.size:
        return curves
    common = np.random.default_rng(seed).standard_normal((size, errors.shape[1]))
    mixed = np.einsum("k,krt->rt", fit.weights[:, who], errors)
    return np.asarray(curves + fit.gain * common @ mixed)


def person_stream(seed: Any, label: Any) -> np.random.Generator:
    """Random numbers of one person's own for a seed, by the written form of their label.

    Without a seed they are different every time.
    """
    if seed is None:
        return np.random.default_rng()
    own = int.from_bytes(blake2b(label_text(label).encode(), digest_size=8).digest())
    return np.random.default_rng([whole_number(seed, "seed", 0), own])


def some_seed() -> int:
    """Another seed every time: what all people share is then drawn once for all of them."""
    return int(np.random.default_rng().integers(2**62))


def plausible_columns(
    fit: Fit, at: Any, ids: Any, size: int, seed: int | None, item_uncertainty: bool
) -> dict[str, Any]:
    """Columns id, time, pv1, pv2, …: see `Fit.plausible_values`."""
    size = whole_number(size, "size", 1)
    seed = some_seed() if seed is None else seed
    offsets = fit.to_clock(at)
    labels = fit.ids if ids is None else as_list(ids)
    fit.require_people()
    index_of(fit.responses.people, labels, "ids")
    check_size(len(labels) * offsets.size * size, "size")
    # the same for everyone, whichever shard they are in
    worlds = drawn_worlds(fit, size, np.random.default_rng(seed)) if item_uncertainty else None
    values = np.empty((len(labels), offsets.size, size))
    for k, label in enumerate(labels):
        if worlds is None:
            values[k] = plausible_curves(fit, label, at, size, seed).T
        else:
            values[k] = _in_worlds(fit, label, offsets, worlds, seed).T
    flat = values.reshape(-1, size)
    times = fit.from_clock(np.tile(offsets, len(labels)))
    keys = {"id": [label for label in labels for _ in range(offsets.size)], "time": times}
    return keys | {f"pv{m + 1}": flat[:, m] for m in range(size)}


def _in_worlds(
    fit: Fit, label: Any, offsets: Array, worlds: list[World], seed: int | None
) -> Array:
    """One curve of a person in each world, (n_worlds, n_times)."""
    who = index_of(fit.responses.people, [label], "id")
    times = fit.from_clock(offsets)
    stream = person_stream(seed, label)
    curves = [person_curve(fit, who, None, world.bank, world.cohort) for world in worlds]
    return np.concatenate([curve.sample(times, 1, stream) for curve in curves])
