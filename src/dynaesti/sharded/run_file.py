"""Open the folder of a sharded fit; everything in it is checked before it is used."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaesti.core import (
    PARTS,
    Arrays,
    Folder,
    Header,
    check_array,
    require,
)
from dynaesti.data import Labels
from dynaesti.errors import StorageError, option
from dynaesti.model import ItemModel
from dynaesti.results import N_CHECK_SUMS, common_header, read_common
from dynaesti.sharded.shard_model import absolute_address
from dynaesti.sharded.shards import Shards, is_shards

if TYPE_CHECKING:
    from dynaesti.sharded.fit import ShardedFit

WITHIN = "run:"  # says that a shard's file lies in the run's own folder


def run_header(fit: ShardedFit, arrays: Arrays) -> Header:
    """What the file of a sharded fit says, beside the arrays.

    Names in files stay as they once were.
    """
    shards = fit.shards.header()
    added = fit.run.child(PARTS)
    for part in shards["parts"]:  # new shards are in the folder of the run, and move with it
        name = part["file"].rpartition("/")[2]
        if part["file"] == absolute_address(added.path(name)):
            part["file"] = f"{WITHIN}{name}"
    return {
        **common_header(fit, fit.shards.items, arrays),
        "shards": shards,
        "folder": fit.run.relative(fit.shards.folder),
        "versions": list(fit.versions),
        "span": list(fit.span),
        "turned": fit.is_reflected,
        "clock": fit.clock,
        "log_evidence": fit.log_evidence,
        "unsettled": fit.n_unconverged,
        "stale": fit.stale,
    }


def read_run(
    run: Folder,
    header: Header,
    arrays: Arrays,
    models: Mapping[str, ItemModel] | None,
    connect: bool = False,
) -> dict[str, Any]:
    """The fields of a ShardedFit in a run's folder, checked before anything is trusted.

    Hosts that only the file names are not called, unless `connect` says so.
    """
    common, items = read_common(header, arrays, models)
    _check_hosts(run, header, connect)
    for part in header["shards"]["parts"]:
        if part["file"].startswith(WITHIN):
            name = os.path.basename(part["file"].removeprefix(WITHIN))
            part["file"] = absolute_address(run.child(PARTS).path(name))
    shards = Shards.from_header(run.resolved(header["folder"]), header["shards"])
    _check_header(header, arrays, items, shards)
    _check_shards(run, shards)
    return {
        **vars(common),
        "shards": shards,
        "run": run,
        "versions": tuple(header["versions"]),
        "is_reflected": bool(header["turned"]),
        "span": (float(header["span"][0]), float(header["span"][1])),
        "clock": header["clock"],
        "log_evidence": float(header["log_evidence"]),
        "n_unconverged": int(header["unsettled"]),
        "answered": arrays["answered"],
        "stale": bool(header.get("stale", False)),
        "item_check_sums": arrays.get("item_checks"),  # absent in files of older versions
    }


def _check_hosts(run: Folder, header: Header, connect: bool) -> None:
    """Refuse shards on hosts that only the file names."""
    remedy = option("connect", True, python="load(path, connect=True)")
    for name in (header["folder"], *(part["file"] for part in header["shards"]["parts"])):
        if not connect and not run.may_reach(name):
            raise StorageError(
                f"{run.root}: its shards are said to be at {name}, elsewhere than the run itself; "
                f"if you trust that, open it with {remedy}"
            )


def _check_header(header: Header, arrays: Arrays, items: Labels, shards: Shards) -> None:
    """Refuse a header that does not fit the shards."""
    versions = header["versions"]
    require(shards.items.tolist() == items.tolist(), "the shards have other items than the fit")
    require(
        len(versions) == len(shards)
        and all(type(version) is int and version >= 0 for version in versions),
        "sites are misnamed",
    )
    check_array(arrays["answered"], (items.size,), "the items' answers", "i")
    if "item_checks" in arrays:
        check_array(arrays["item_checks"], (N_CHECK_SUMS, items.size), "the items' checks", "f")
    require(
        header["clock"] in ("calendar", "person")
        and np.isfinite(np.array(header["span"], dtype=float).reshape(2)).all(),
        "no clock",
    )


def _check_shards(run: Folder, shards: Shards) -> None:
    """Refuse shards that are gone, or were prepared anew."""
    for folder, name in (shards.folder_and_name(k) for k in range(len(shards))):
        if not folder.exists(name):
            raise StorageError(
                f"{run.root}: a shard of it is not at {folder.path(name)} any more; move it back"
            )
    if is_shards(shards.folder) and Shards.open(shards.folder).identity != shards.identity:
        raise StorageError(
            f"{run.root}: the shards at {shards.folder} were prepared anew since this fit was "
            "made; fit them again"
        )
