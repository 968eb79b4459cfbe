"""Settled sites of each shard on disk, version by version."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np

from dynaesti.core import Folder
from dynaesti.estimation import PeopleSites, StartingSites
from dynaesti.inference import NaturalGaussian
from dynaesti.model import Kernel, kernel_header

SITES = "sites"


def kernel_key(kernel: Kernel) -> str:
    """A short name for a prior, the same in every process."""
    return hashlib.sha1(json.dumps(kernel_header(kernel), sort_keys=True).encode()).hexdigest()[:16]


def sites_name(k: int, version: int) -> str:
    """The file of a shard's sites after a look."""
    return f"{SITES}/{k:05d}.{version}.npz"


def write_sites(run: Folder, k: int, version: int, sites: StartingSites) -> None:
    """Keep a shard's sites.

    Single precision is enough to begin from: grafting stops by its own tolerance.
    """
    buffer = BytesIO()
    held: dict[str, Any] = {
        kernel_key(kernel): np.stack(pair).astype(np.float32) for kernel, pair in sites.items()
    }
    np.savez(buffer, **held)
    with run.writing(sites_name(k, version)) as file:
        file.write(buffer.getbuffer())


def read_sites(
    run: Folder, k: int, version: int, kernels: Sequence[Kernel], people: PeopleSites
) -> StartingSites:
    """A shard's sites after a look.

    None where there is no such file, or a damaged one: the answer is the same without a beginning.
    """
    out: StartingSites = {}
    try:
        if not run.exists(sites_name(k, version)):
            return out
        with (
            run.reading(sites_name(k, version)) as file,
            np.load(BytesIO(file.read()), allow_pickle=False) as held,
        ):
            for kernel in kernels:
                pair = (
                    held[kernel_key(kernel)].astype(np.float64)
                    if kernel_key(kernel) in held
                    else np.zeros(0)
                )
                if pair.shape == (2, people.for_kernel(kernel).n_sites) and np.isfinite(pair).all():
                    out[kernel] = NaturalGaussian(pair[0], pair[1])
    except Exception:  # whatever zip, NumPy or the file system make of damage
        return {}
    return out


def clean_sites(run: Folder, *kept: tuple[int, ...]) -> None:
    """Remove all sites but those of these versions, which count the shards."""
    names = {sites_name(k, version) for versions in kept for k, version in enumerate(versions)}
    place = run.child(SITES)
    for name in place.names():
        if f"{SITES}/{name}" not in names:
            place.remove(name)
