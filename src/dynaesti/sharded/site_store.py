"""Converged sites of each shard on disk, one file for each version."""

from __future__ import annotations

import hashlib
import json
from io import BytesIO
from typing import Any

import numpy as np

from dynaesti.core import Folder
from dynaesti.estimation import PeopleSites, PriorMixture, StartingSites
from dynaesti.inference import NaturalGaussian
from dynaesti.model import Kernel, kernel_header

SITES = "sites"


def kernel_key(kernel: Kernel) -> str:
    """A short name for a kernel, the same in every process."""
    return hashlib.sha1(json.dumps(kernel_header(kernel), sort_keys=True).encode()).hexdigest()[:16]


def sites_name(k: int, version: int) -> str:
    """Name of the file with the sites of shard k after an E-step, which has a version."""
    return f"{SITES}/{k:05d}.{version}.npz"


def write_sites(run: Folder, k: int, version: int, sites: StartingSites) -> None:
    """Write the sites of shard k, in double precision.

    Where EM creeps, sites rounded between iterations lead it to an end of its own, 1/1000 of a
    standard error off the fit in memory.
    """
    buffer = BytesIO()
    arrays: dict[str, Any] = {kernel_key(kernel): np.stack(pair) for kernel, pair in sites.items()}
    np.savez(buffer, **arrays)
    with run.writing(sites_name(k, version)) as file:
        file.write(buffer.getbuffer())


def read_sites(
    run: Folder, k: int, version: int, priors: PriorMixture, people: PeopleSites
) -> StartingSites:
    """The sites of shard k after an E-step, by kernel.

    Empty where the file is missing or damaged: the result is the same from any start.
    """
    out: StartingSites = {}
    try:
        if not run.exists(sites_name(k, version)):
            return out
        with (
            run.reading(sites_name(k, version)) as file,
            np.load(BytesIO(file.read()), allow_pickle=False) as arrays,
        ):
            for kernel in priors.kernels:
                pair = (
                    arrays[kernel_key(kernel)].astype(np.float64)
                    if kernel_key(kernel) in arrays
                    else np.zeros(0)
                )
                n_sites = people.for_kernel(kernel, priors).n_sites
                if pair.shape == (2, n_sites) and np.isfinite(pair).all():
                    out[kernel] = NaturalGaussian(pair[0], pair[1])
    except Exception:  # whatever zip, NumPy or the file system make of damage
        return {}
    return out


def clean_sites(run: Folder, *kept: tuple[int, ...]) -> None:
    """Remove all files of sites but those of these versions, one version for each shard."""
    names = {sites_name(k, version) for versions in kept for k, version in enumerate(versions)}
    folder = run.child(SITES)
    for name in folder.names():
        if f"{SITES}/{name}" not in names:
            folder.remove(name)
