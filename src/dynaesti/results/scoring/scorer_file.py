"""A Scorer as a header and arrays, and back: the archive of fits, without their people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaesti.core import Arrays, Header, check_array, require
from dynaesti.data import Labels, Responses, TimeAxis, read_axis
from dynaesti.estimation import FittedModel
from dynaesti.model import ItemModel
from dynaesti.results.io.fit_checks import check_reading
from dynaesti.results.io.fit_file import common_header, read_common
from dynaesti.results.scoring.item_spread import item_moments, nodes_of_moments

if TYPE_CHECKING:
    from dynaesti.results.fit_base import FitBase


def scoring_model(model: FittedModel | FitBase) -> FittedModel:
    """What scoring needs of a fitted model; thin items by their first two moments."""
    nodes = None
    if model.item_nodes is not None:
        nodes = tuple(nodes_of_moments(*item_moments(one)) for one in model.item_nodes)
    return FittedModel(
        model.coding,
        model.bank,
        model.priors,
        None,
        None,
        (),
        model.converged,
        model.options,
        (),
        model.max_abs_ability,
        nodes,
        model.item_drift,
    )


def empty_responses(
    axis: TimeAxis,
    unit: str,
    clock: str,
    frame: str | None,
    columns: Mapping[str, str | None],
    groups: tuple[Any, ...],
) -> Responses:
    """No responses, with the columns, clock and groups of others."""
    none = np.zeros(0)
    numbers = np.zeros(0, dtype=np.int64)
    return Responses(
        people=none,
        items=none,
        person=numbers,
        item=numbers,
        resp=none,
        offsets=none,
        weight=None,
        axis=axis,
        unit=unit,
        clock=clock,
        origin=none,
        dropped=0,
        frame=frame,
        notes=(),
        models=None,
        row=numbers,
        columns=columns,
        groups=groups,
    )


def scorer_header(model: FittedModel, items: Labels, template: Responses, arrays: Arrays) -> Header:
    """The header of a scorer's file; its arrays are added to `arrays`."""
    header = common_header(replace(model, item_nodes=None), items, arrays)
    for k, nodes in enumerate(model.item_nodes or ()):
        mean, lower = item_moments(nodes)
        arrays |= {f"moments{k}.mean": mean, f"moments{k}.lower": lower}
    return {
        **header,
        "reading": {
            "axis": asdict(template.axis),
            "unit": template.unit,
            "clock": template.clock,
            "dropped": 0,
            "frame": template.frame,
            "notes": [],
            "columns": dict(template.columns),
            "groups": list(template.groups),
        },
    }


def read_scorer(
    header: Header, arrays: Arrays, models: Mapping[str, ItemModel] | None
) -> dict[str, Any]:
    """The fields of a Scorer from what `scorer_header` wrote, checked."""
    model, items = read_common(header, arrays, models)
    check_reading(header["reading"])
    reading = header["reading"]
    nodes = []
    for k, block in enumerate(model.bank.blocks):
        if f"moments{k}.mean" in arrays:
            size = block.u.shape[1]
            mean, lower = arrays[f"moments{k}.mean"], arrays[f"moments{k}.lower"]
            check_array(mean.astype(np.float64), block.u.shape, "the items' moments")
            shape = (block.u.shape[0], size * (size + 1) // 2)
            check_array(lower.astype(np.float64), shape, "the items' moments")
            nodes.append(nodes_of_moments(mean, lower))
    require(len(nodes) in (0, len(model.bank.blocks)), "the items' moments")
    template = empty_responses(
        read_axis(reading["axis"]),
        reading["unit"],
        reading["clock"],
        reading["frame"],
        reading["columns"],
        tuple(reading["groups"]),
    )
    return {
        "model": replace(model, item_nodes=tuple(nodes) or None),
        "item_labels": items,
        "template": template,
    }


def fingerprint_of(model: FittedModel, items: Labels, template: Responses) -> bytes:
    """Eight bytes that change with anything that scoring depends on."""
    arrays: Arrays = {}
    header = scorer_header(model, items, template, arrays)
    digest = blake2b(digest_size=8)
    header.pop("trace")
    for name in ("farthest", "threads"):  # of the people, and of the machine
        header["options"].pop(name, None)
    digest.update(json.dumps(header, sort_keys=True, default=lambda one: one.item()).encode())
    for name in sorted(arrays):
        # moments made of points are the same only to rounding once they were saved
        if not name.startswith("moments"):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.digest()
