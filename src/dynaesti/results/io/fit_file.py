"""A Fit as a header and arrays, and back: one file, nothing pickled, no refitting."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import date, datetime
from typing import Any

import numpy as np

from dynaesti.core import Arrays, Header
from dynaesti.data import Covariate, Labels, Responses, as_labels, check_saved_responses, read_axis
from dynaesti.errors import InputError, NeedsFunctionError
from dynaesti.estimation import (
    FittedModel,
    ItemDrift,
    ItemNodes,
    IterationRecord,
    Periods,
    PriorMixture,
    ResponseCoding,
    build_people_sites,
)
from dynaesti.inference import EPResult, Moments, NaturalGaussian
from dynaesti.model import (
    MODELS,
    AbilityScale,
    CustomDensity,
    CustomItemModel,
    ItemBank,
    ItemBlock,
    ItemModel,
    cohort_header,
    kernel_header,
    read_cohort,
    read_kernel,
)
from dynaesti.results.io.fit_checks import (
    check_covariance,
    check_ep,
    check_item_drift,
    check_item_nodes,
    check_items,
    check_labels,
    check_options,
    check_population,
    check_reading,
    check_trace,
)

ROWS = ("person", "item", "resp", "offsets", "origin", "row")
EP_NAMES = ("precision", "shift", "cav_mean", "cav_var", "log_evidence", "converged", "log_z")
DRIFT = ("start", "period", "seen", "noise", "level", "level_variance")
BLOCK = ("items", "u", "free", "values", "prior_mean", "prior_sd")
# what a model's header keeps beside its name; others keep whether slopes are signed
MODEL_FIELDS = {
    "own": ("label", "values"),
    "own density": ("label", "values", "transform"),
    "golf": ("signed", "pivot", "descending"),
}


def common_header(fit: FittedModel, items: Labels, arrays: Arrays) -> Header:
    """Header of items, priors, trace and options; arrays are added to `arrays`."""
    arrays.update(
        {
            "coding.values": fit.coding.values,
            "coding.table": fit.coding.table,
            "population": fit.population,
        }
    )
    for k, block in enumerate(fit.bank.blocks):
        arrays.update({f"block{k}.{name}": getattr(block, name) for name in BLOCK})
        if fit.covariance is not None:
            arrays[f"block{k}.covariance"] = fit.covariance[k]
    for k, nodes in enumerate(fit.item_nodes or ()):
        arrays[f"nodes{k}.u"] = nodes.u.astype(np.float32)
        arrays[f"nodes{k}.weights"] = nodes.weights.astype(np.float32)
    if fit.item_drift is not None:
        arrays.update({f"drift.{name}": getattr(fit.item_drift, name) for name in DRIFT})
    if fit.scale_covariance is not None:
        arrays["shared"] = fit.scale_covariance
    return {
        "items": _labels_header(items, "items", arrays),
        "blocks": [
            {"model": _model_header(b.model), "size": b.size, "first_row": b.first_row}
            for b in fit.bank.blocks
        ],
        "metric": asdict(fit.bank.ability_scale),
        "priors": fit.bank.priors,
        "merged": list(fit.coding.merged),
        "errors": fit.covariance is not None,
        "kernels": [kernel_header(kernel) for kernel in fit.kernels],
        "trace": [asdict(record) for record in fit.trace],
        "converged": fit.converged,
        # names in files stay as they once were
        "options": {**fit.options, "farthest": fit.max_abs_ability},
        "batches": list(fit.batches),
        "cohort": cohort_header(fit.priors.cohort, arrays),
        "drift": _drift_header(fit.item_drift),
    }


def read_common(
    header: Header, arrays: Arrays, models: Mapping[str, ItemModel] | None
) -> tuple[FittedModel, Labels]:
    """What `common_header` wrote, checked, and the items' labels.

    `models` are item models of the user's own by label, where the fit has any.
    """
    items = read_labels(header["items"], "items", arrays)
    bank = _read_bank(header, arrays, models or {})
    coding = _read_coding(header, arrays, bank, items.size)
    covariance = None
    if header["errors"]:
        covariance = tuple(arrays[f"block{k}.covariance"] for k in range(len(bank.blocks)))
    nodes = _read_nodes(arrays, len(bank.blocks))
    kernels = tuple(read_kernel(k) for k in header["kernels"])
    trace = tuple(IterationRecord(**record) for record in header["trace"])
    check_labels(items, "the items")
    check_items(bank, coding, items.size)
    check_covariance(bank, covariance, arrays.get("shared"))
    check_item_nodes(bank, nodes)
    check_population(kernels, arrays["population"])
    check_options(header["options"], ("abilities", "items"))
    check_trace(trace)
    fitted = FittedModel(
        coding,
        bank,
        PriorMixture(
            kernels,
            np.zeros(len(kernels)),
            arrays["population"],
            read_cohort(header.get("cohort"), arrays),  # absent in files of older versions
        ),
        covariance,
        arrays.get("shared"),
        trace,
        bool(header["converged"]),
        {key: value for key, value in header["options"].items() if key != "farthest"},
        tuple(map(str, header.get("batches", ()))),  # absent in files of older versions
        float(header["options"]["farthest"]),
        nodes,
        _read_drift(header.get("drift"), arrays, items.size),  # absent in files of older versions
    )
    return fitted, items


def _read_bank(header: Header, arrays: Arrays, models: Mapping[str, ItemModel]) -> ItemBank:
    blocks = []
    for k, block in enumerate(header["blocks"]):
        parts: dict[str, Any] = {name: arrays[f"block{k}.{name}"] for name in BLOCK}
        blocks.append(
            ItemBlock(
                model=_read_model(block["model"], models),
                size=block["size"],
                first_row=block["first_row"],
                weak=header["priors"] in ("weak", "held"),
                learns_spread=header["priors"] != "held",
                **parts,
            )
        )
    return ItemBank(tuple(blocks), AbilityScale(**header["metric"]), header["priors"])


def _read_nodes(arrays: Arrays, n_blocks: int) -> tuple[ItemNodes, ...] | None:
    """The items' weighted points; files of older versions have none."""
    if "nodes0.u" not in arrays:
        return None
    parts = [(arrays[f"nodes{k}.u"], arrays[f"nodes{k}.weights"]) for k in range(n_blocks)]
    return tuple(ItemNodes(u.astype(np.float64), w.astype(np.float64)) for u, w in parts)


def _drift_header(drift: ItemDrift | None) -> Header | None:
    if drift is None:
        return None
    return {
        "periods": asdict(drift.periods),
        "variance": drift.variance,
        "timescale": drift.timescale,
    }


def _read_drift(header: Header | None, arrays: Arrays, n_items: int) -> ItemDrift | None:
    """How items drift, checked."""
    if header is None:
        return None
    parts = {name: arrays[f"drift.{name}"] for name in DRIFT}
    periods = Periods(**header["periods"])
    found = ItemDrift(periods, float(header["variance"]), float(header["timescale"]), **parts)
    check_item_drift(found, n_items)
    return found


def _read_coding(header: Header, arrays: Arrays, bank: ItemBank, n_items: int) -> ResponseCoding:
    per_item = [bank.blocks[0].model] * n_items
    for block in bank.blocks:
        for item in block.items:
            per_item[item] = block.model
    return ResponseCoding(
        arrays["coding.values"], arrays["coding.table"], tuple(per_item), tuple(header["merged"])
    )


def fit_header(fit: Any, arrays: Arrays) -> Header:
    """The header of a fit's file; its arrays are added to `arrays`."""
    r = fit.responses
    arrays.update({f"responses.{name}": getattr(r, name) for name in ROWS})
    if r.weight is not None:
        arrays["responses.weight"] = r.weight
    if r.group is not None:
        arrays["responses.group"] = r.group
    for k, column in enumerate(r.covariates.values()):
        arrays[f"covariate{k}"] = column.values
    arrays["weights"] = fit.weights
    for k, result in enumerate(fit.ep):
        arrays.update({f"prior{k}.{name}": part for name, part in ep_arrays(result).items()})
    return {
        **common_header(fit, r.items, arrays),
        "people": _labels_header(r.people, "people", arrays),
        "models": None if r.models is None else r.models.tolist(),
        "responses": {
            "axis": asdict(r.axis),
            "unit": r.unit,
            "clock": r.clock,
            "dropped": r.dropped,
            "frame": r.frame,
            "notes": list(r.notes),
            "columns": dict(r.columns),
            "groups": list(r.groups),
            "covariates": [
                {"name": name, "levels": None if one.levels is None else list(one.levels)}
                for name, one in r.covariates.items()
            ],
        },
    }


def ep_arrays(result: EPResult) -> dict[str, Any]:
    """Everyone's curves under one kernel, by the names of the arrays in a file."""
    return {
        "precision": result.sites.precision,
        "shift": result.sites.shift,
        "cav_mean": result.cavity.mean,
        "cav_var": result.cavity.variance,
        "log_evidence": result.log_evidence,
        "converged": result.converged,
        "log_z": result.log_z,
    }


def read_ep(arrays: Arrays, k: int) -> EPResult:
    """Everyone's curves under the k-th kernel; residuals and sweeps of EP are not in the file."""
    part = {name: arrays[f"prior{k}.{name}"] for name in EP_NAMES}
    n_curves = part["log_evidence"].size
    return EPResult(
        NaturalGaussian(part["precision"], part["shift"]),
        Moments(part["cav_mean"], part["cav_var"]),
        part["log_z"],
        part["log_evidence"],
        np.zeros(n_curves),
        part["converged"],
        np.zeros(n_curves),
        np.zeros(n_curves, dtype=np.int64),
    )


def read_fit(
    header: Header, arrays: Arrays, models: Mapping[str, ItemModel] | None
) -> dict[str, Any]:
    """The fields of a Fit from what `fit_header` wrote, checked."""
    common, items = read_common(header, arrays, models)
    reading = header["responses"]
    check_reading(reading)
    rows = {name: arrays[f"responses.{name}"] for name in ROWS}
    responses = Responses(
        people=read_labels(header["people"], "people", arrays),
        items=items,
        weight=arrays.get("responses.weight"),
        axis=read_axis(reading["axis"]),
        unit=reading["unit"],
        clock=reading["clock"],
        dropped=reading["dropped"],
        frame=reading["frame"],
        notes=tuple(reading["notes"]),
        columns=reading["columns"],
        groups=tuple(map(str, reading.get("groups", ()))),  # absent in files of older versions
        group=arrays.get("responses.group"),
        covariates={
            str(one["name"]): Covariate(
                arrays[f"covariate{k}"],
                None if one["levels"] is None else tuple(map(str, one["levels"])),
            )
            for k, one in enumerate(reading.get("covariates", ()))  # absent in older files
        },
        models=None if header["models"] is None else as_labels(header["models"]),
        **rows,
    )
    ep = tuple(read_ep(arrays, k) for k in range(len(header["kernels"])))
    if responses.people.size or len(responses):
        check_labels(responses.people, "the people")
    check_saved_responses(responses)
    sites = build_people_sites(responses, common.coding, common.bank, common.priors.effects)
    check_ep(ep, common.priors, sites, arrays["weights"])
    return {
        **vars(common),
        "responses": responses,
        "ep": ep,
        "weights": arrays["weights"],
        "known_sites": sites,
    }


def _labels_header(labels: Labels, name: str, arrays: Arrays) -> list[Any] | None:
    """Labels of one number type are an array; others are listed with their types."""
    if labels.dtype.kind in "iufbM":
        arrays[f"labels.{name}"] = labels
        return None
    return [_tagged(label, name) for label in labels.tolist()]


def _tagged(label: Any, name: str) -> Any:
    if isinstance(label, str) or (isinstance(label, int | float) and not isinstance(label, bool)):
        return label
    if isinstance(label, bool):
        return {"bool": label}
    if isinstance(label, datetime):
        return {"datetime": label.isoformat()}
    if isinstance(label, date):
        return {"date": label.isoformat()}
    raise InputError(
        f"{name}: a label of type {type(label).__name__} cannot be saved; use numbers, text or "
        f"dates"
    )


def read_labels(as_list: list[Any] | None, name: str, arrays: Arrays) -> Labels:
    """Labels from what a header and arrays hold."""
    if as_list is None:
        return arrays[f"labels.{name}"]
    readers: dict[str, Any] = {
        "bool": bool,
        "datetime": datetime.fromisoformat,
        "date": date.fromisoformat,
    }
    return as_labels(
        [
            readers[next(iter(label))](next(iter(label.values())))
            if isinstance(label, dict)
            else label
            for label in as_list
        ]
    )


def _model_header(model: ItemModel) -> Header:
    fields = MODEL_FIELDS.get(model.name, ("signed",))
    return {"name": model.name, **{name: getattr(model, name) for name in fields}}


def _read_model(header: Header, given: Mapping[str, ItemModel]) -> ItemModel:
    rest = {key: value for key, value in header.items() if key != "name"}
    if header["name"] not in ("own", "own density"):
        return MODELS[header["name"]](**rest)
    found = given.get(header["label"])
    if not isinstance(found, CustomItemModel):
        raise NeedsFunctionError(
            f"models: the fit uses an item model of your own, {header['label']!r}; pass it again: "
            f"load(path, models={{{header['label']!r}: CustomItemModel(…)}})"
        )
    values = np.array(header["values"], dtype=np.float64)
    if header["name"] == "own":
        return found.with_values(values)
    return CustomDensity(
        found.log_prob,
        found.params,
        found.label,
        tuple(values.tolist()),
        transform=str(header["transform"]),
    )
