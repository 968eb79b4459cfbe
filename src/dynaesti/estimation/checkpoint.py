"""Interrupted fits: marks on disk, from which a fit goes on and gives the same answer."""

import posixpath
import time
import zlib
from collections.abc import Mapping
from dataclasses import asdict, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from dynaesti.core import Arrays, Folder, Header, read_archive, write_archive
from dynaesti.data import Responses, label_text
from dynaesti.errors import InputError, StorageError
from dynaesti.estimation.em import EMState, IterationRecord
from dynaesti.estimation.population import PriorMixture
from dynaesti.model import AbilityScale, CustomItemModel, ItemBank, kernel_header, read_kernel

NUMBERS = ("stage", "step", "settle", "quiet", "best", "last", "jumped", "farthest")
BLOCK = ("u", "prior_mean", "prior_sd")


class Checkpoint:
    """A file that holds a fit's last mark, written at most every so many seconds."""

    def __init__(self, path: str | PathLike[str], fingerprint: str, every: float = 20.0) -> None:
        if not isinstance(path, str | PathLike) or not fspath(path):
            raise InputError(f"checkpoint: expected a file name, got {path!r}")
        if Path(path).is_dir():
            raise InputError(f"checkpoint: {fspath(path)} is a folder; name a file in it")
        folder, name = posixpath.split(fspath(path).replace("\\", "/"))
        self.place = Folder(folder or ".")
        self.name = name
        self.every = every
        self.written = time.monotonic()
        self.print = fingerprint

    @property
    def path(self) -> str:
        """Where the file lies."""
        return self.place.path(self.name)

    def __call__(self, mark: EMState) -> None:
        """Write the mark, if the last one is old enough."""
        if time.monotonic() - self.written < self.every:
            return
        arrays: Arrays = {
            "log_mass": mark.priors.log_mass,
            "share": mark.priors.share,
            **{f"memory.{name}": array for name, array in mark.memory.items()},
        }
        for name, bank in (("bank", mark.bank), ("plain", mark.plain)):
            for k, block in enumerate(bank.blocks):
                arrays.update({f"{name}{k}.{part}": getattr(block, part) for part in BLOCK})
        for k, pair in enumerate(mark.seen):
            arrays[f"seen{k}"] = np.stack(pair)
        header = {name: getattr(mark, name) for name in NUMBERS}
        with self.place.writing(self.name) as file:
            write_archive(
                file,
                "checkpoint",
                {
                    **header,
                    "print": self.print,
                    "metrics": [asdict(mark.bank.ability_scale), asdict(mark.plain.ability_scale)],
                    "kernels": [kernel_header(kernel) for kernel in mark.priors.kernels],
                    "seen": len(mark.seen),
                    "trace": [asdict(step) for step in mark.trace],
                },
                arrays,
                compressed=False,
            )
        self.written = time.monotonic()

    def resume(self, template: ItemBank) -> EMState | None:
        """The mark on disk, None where there is none; one of other data or options is refused."""
        if not self.place.exists(self.name):
            return None
        with self.place.reading(self.name) as file:
            kind, header, arrays = read_archive(file, self.path)
        if kind != "checkpoint" or header.get("print") != self.print:
            raise StorageError(
                f"{self.path}: a checkpoint of other data or options (or no checkpoint); remove "
                f"it, or name another file"
            )
        try:
            return _read_mark(header, arrays, template)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise StorageError(
                f"{self.path}: damaged, a part is missing or malformed ({error}); remove it to "
                f"start anew"
            ) from error

    def done(self) -> None:
        """The fit is over: the file goes."""
        self.place.remove(self.name)


def _read_mark(header: Header, arrays: Arrays, template: ItemBank) -> EMState:
    banks = []
    for name, ability_scale in zip(("bank", "plain"), header["metrics"], strict=True):
        blocks = [
            replace(
                block,
                u=arrays[f"{name}{k}.u"],
                prior_mean=arrays[f"{name}{k}.prior_mean"],
                prior_sd=arrays[f"{name}{k}.prior_sd"],
            )
            for k, block in enumerate(template.blocks)
        ]
        banks.append(
            replace(template, blocks=tuple(blocks), ability_scale=AbilityScale(**ability_scale))
        )
    kernels = tuple(read_kernel(kernel) for kernel in header["kernels"])
    seen = tuple((arrays[f"seen{k}"][0], arrays[f"seen{k}"][1]) for k in range(header["seen"]))
    memory = {
        name.removeprefix("memory."): array
        for name, array in arrays.items()
        if name.startswith("memory.")
    }
    return EMState(
        bank=banks[0],
        plain=banks[1],
        seen=seen,
        priors=PriorMixture(kernels, arrays["log_mass"], arrays["share"]),
        memory=memory,
        trace=tuple(IterationRecord(**step) for step in header["trace"]),
        **{name: header[name] for name in NUMBERS},
    )


def in_full(value: Any) -> str:
    """An option in words that say all of it, in every process alike.

    Frames are abridged by `repr`, and functions told by their address.
    """
    if isinstance(value, CustomItemModel):
        return (
            f"own model {value.label!r} {sorted(value.params.items())} {_function(value.log_prob)}"
        )
    if isinstance(value, Mapping):
        return (
            "{"
            + ", ".join(
                f"{key!r}: {in_full(item)}"
                for key, item in sorted(value.items(), key=lambda pair: label_text(pair[0]))
            )
            + "}"
        )
    return repr(value)


def _function(function: Any) -> str:
    """A function by what it does: its code, and what it holds on to."""
    code = getattr(function, "__code__", None)
    if code is None:
        return f"{type(function).__module__}.{type(function).__qualname__} {vars(function) if hasattr(function, '__dict__') else ''}"
    held = [cell.cell_contents for cell in function.__closure__ or ()]
    parts = (
        code.co_code.hex(),
        [c for c in code.co_consts if not hasattr(c, "co_code")],
        code.co_names,
        function.__defaults__,
        [_function(part) if callable(part) else repr(part) for part in held],
        [c.co_code.hex() for c in code.co_consts if hasattr(c, "co_code")],
    )
    return f"{function.__qualname__} {parts}"


def fingerprint(responses: Responses, options: dict[str, Any]) -> str:
    """A short print of data and options, by which a mark is known again."""
    total = zlib.crc32(repr(sorted(options.items(), key=lambda pair: pair[0])).encode())
    for labels in (responses.people, responses.items, responses.models):
        total = zlib.crc32(repr(None if labels is None else labels.tolist()).encode(), total)
    for part in (
        responses.person,
        responses.item,
        responses.resp,
        responses.offsets,
        responses.weight,
    ):
        if part is not None:
            total = zlib.crc32(np.ascontiguousarray(part).tobytes(), total)
    return f"{total:08x}"
