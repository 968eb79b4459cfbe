"""A Fit as a header and arrays, and back: one file, nothing pickled, no refitting."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import date, datetime
from typing import Any

from dynaesti.core import Array, Arrays, Header
from dynaesti.data import Labels, Responses, as_labels, check_saved_responses, read_axis
from dynaesti.errors import InputError
from dynaesti.estimation import (
    FittedModel,
    Grafts,
    IterationRecord,
    ResponseCoding,
    build_site_layout,
)
from dynaesti.model import (
    MODELS,
    AbilityScale,
    CustomItemModel,
    ItemBank,
    ItemBlock,
    ItemModel,
    PivotPartialCredit,
    kernel_header,
    read_kernel,
)
from dynaesti.results.io.fit_checks import (
    check_covariance,
    check_grafts,
    check_items,
    check_labels,
    check_options,
    check_population,
    check_told,
    check_trace,
)

ROWS = ("person", "item", "resp", "offsets", "origin", "row")
BLOCK = ("items", "u", "free", "values", "prior_mean", "prior_sd")
SITES = {f.name: f.name for f in fields(Grafts)} | {
    "cavity_mean": "cav_mean",
    "cavity_var": "cav_var",
}  # name in the file


@dataclass(frozen=True)
class FitParts(FittedModel):
    """Everything a Fit consists of."""

    responses: Responses
    grafts: tuple[Grafts, ...]
    weights: Array  # (priors, people)


def common_header(fit: FittedModel, items: Labels, arrays: Arrays) -> Header:
    """Items, priors, trace and options; arrays beside them."""
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
    if fit.shared is not None:
        arrays["shared"] = fit.shared
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
        "trace": [asdict(step) for step in fit.trace],
        "converged": fit.converged,
        "options": dict(fit.options),
        "batches": list(fit.batches),
    }


def read_common(
    header: Header, arrays: Arrays, models: Mapping[str, ItemModel] | None
) -> tuple[FittedModel, Labels]:
    """The same again, and the items' names; models of the user's own are needed again, by label."""
    items = read_labels(header["items"], "items", arrays)
    weak = header["priors"] == "weak"
    parts: list[dict[str, Any]] = [
        {name: arrays[f"block{k}.{name}"] for name in BLOCK} for k in range(len(header["blocks"]))
    ]
    blocks = tuple(
        ItemBlock(
            model=_read_model(b["model"], models or {}),
            size=b["size"],
            first_row=b["first_row"],
            weak=weak,
            **part,
        )
        for b, part in zip(header["blocks"], parts, strict=True)
    )
    per_item: list[ItemModel] = [blocks[0].model] * items.size
    for block in blocks:
        for item in block.items:
            per_item[item] = block.model
    covariance = (
        tuple(arrays[f"block{k}.covariance"] for k in range(len(blocks)))
        if header["errors"]
        else None
    )
    coding = ResponseCoding(
        arrays["coding.values"], arrays["coding.table"], tuple(per_item), tuple(header["merged"])
    )
    bank = ItemBank(blocks, AbilityScale(**header["metric"]), header["priors"])
    kernels = tuple(read_kernel(k) for k in header["kernels"])
    check_labels(items, "the items")
    check_items(bank, coding, items.size)
    check_covariance(bank, covariance, arrays.get("shared"))
    check_population(kernels, arrays["population"])
    check_options(header["options"], ("abilities", "items"))
    trace = tuple(IterationRecord(**step) for step in header["trace"])
    check_trace(trace)
    return FittedModel(
        coding,
        bank,
        kernels,
        arrays["population"],
        covariance,
        arrays.get("shared"),
        trace,
        bool(header["converged"]),
        header["options"],
        tuple(map(str, header.get("batches", ()))),
    ), items  # files of before have none


def fit_header(fit: FitParts, arrays: Arrays) -> Header:
    """Small things in the header, arrays beside it."""
    r = fit.responses
    arrays.update({f"responses.{name}": getattr(r, name) for name in ROWS})
    if r.weight is not None:
        arrays["responses.weight"] = r.weight
    arrays["weights"] = fit.weights
    for k, grafts in enumerate(fit.grafts):
        arrays.update(
            {f"prior{k}.{stored}": getattr(grafts, name) for name, stored in SITES.items()}
        )
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
        },
    }


def read_fit(header: Header, arrays: Arrays, models: Mapping[str, ItemModel] | None) -> FitParts:
    """The parts again."""
    common, items = read_common(header, arrays, models)
    told = header["responses"]
    check_told(told)
    rows = {name: arrays[f"responses.{name}"] for name in ROWS}
    responses = Responses(
        people=read_labels(header["people"], "people", arrays),
        items=items,
        weight=arrays.get("responses.weight"),
        axis=read_axis(told["axis"]),
        unit=told["unit"],
        clock=told["clock"],
        dropped=told["dropped"],
        frame=told["frame"],
        notes=tuple(told["notes"]),
        columns=told["columns"],
        models=None if header["models"] is None else as_labels(header["models"]),
        **rows,
    )
    grafts = tuple(
        Grafts(**{name: arrays[f"prior{k}.{stored}"] for name, stored in SITES.items()})
        for k in range(len(header["kernels"]))
    )
    check_labels(responses.people, "the people")
    check_saved_responses(responses)
    check_grafts(
        grafts,
        common.kernels,
        build_site_layout(responses, common.coding, common.bank),
        arrays["weights"],
    )
    return FitParts(**vars(common), responses=responses, grafts=grafts, weights=arrays["weights"])


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
    """Labels again."""
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
    if isinstance(model, CustomItemModel):
        return {"name": "own", "label": model.label, "values": list(model.values)}
    rest = (
        {"pivot": model.pivot, "descending": model.descending}
        if isinstance(model, PivotPartialCredit)
        else {}
    )
    return {"name": model.name, "signed": model.signed, **rest}


def _read_model(header: Header, given: Mapping[str, ItemModel]) -> ItemModel:
    rest = {key: value for key, value in header.items() if key != "name"}
    if header["name"] != "own":
        return MODELS[header["name"]](**rest)
    found = given.get(header["label"])
    if not isinstance(found, CustomItemModel):
        raise InputError(
            f"models: the fit uses an item model of your own, {header['label']!r}; pass it again: "
            f"load(path, models={{{header['label']!r}: CustomItemModel(…)}})"
        )
    return CustomItemModel(found.log_prob, found.params, found.label, tuple(header["values"]))
