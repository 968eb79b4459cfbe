"""Interrupted fits: marks on disk, from which a fit goes on and gives the same answer."""

import posixpath
import time
import zlib
from dataclasses import asdict, replace
from os import PathLike, fspath
from typing import Any

import numpy as np

from dynaesti.bank import Bank, Metric
from dynaesti.em import Mark, Priors, Step
from dynaesti.errors import StorageError
from dynaesti.places import Place
from dynaesti.responses import Responses
from dynaesti.saving import Arrays, Header, kernel_header, read_kernel
from dynaesti.storage import dump, parse

NUMBERS = ("stage", "step", "settle", "quiet", "best", "last", "jumped", "farthest")
BLOCK = ("u", "prior_mean", "prior_sd")


class Checkpoint:
    """A file that holds a fit's last mark, written at most every so many seconds."""

    def __init__(self, path: str | PathLike[str], fingerprint: str, every: float = 20.0) -> None:
        folder, name = posixpath.split(fspath(path).replace("\\", "/"))
        self.place, self.name, self.every, self.written = Place(folder or "."), name, every, time.monotonic()
        self.print = fingerprint

    @property
    def path(self) -> str:
        """Where the file lies."""
        return self.place.path(self.name)

    def __call__(self, mark: Mark) -> None:
        """Write the mark, if the last one is old enough."""
        if time.monotonic() - self.written < self.every:
            return
        arrays: Arrays = {"log_mass": mark.priors.log_mass, "share": mark.priors.share,
                          **{f"memory.{name}": array for name, array in mark.memory.items()}}
        for name, bank in (("bank", mark.bank), ("plain", mark.plain)):
            for k, block in enumerate(bank.blocks):
                arrays.update({f"{name}{k}.{part}": getattr(block, part) for part in BLOCK})
        for k, pair in enumerate(mark.seen):
            arrays[f"seen{k}"] = np.stack(pair)
        header = {name: getattr(mark, name) for name in NUMBERS}
        with self.place.writing(self.name) as file:
            dump(file, "checkpoint", {**header, "print": self.print, "metrics": [asdict(mark.bank.metric), asdict(mark.plain.metric)],
                                      "kernels": [kernel_header(kernel) for kernel in mark.priors.kernels], "seen": len(mark.seen),
                                      "trace": [asdict(step) for step in mark.trace]}, arrays, packed=False)
        self.written = time.monotonic()

    def resume(self, template: Bank) -> Mark | None:
        """The mark on disk, None where there is none; one of other data or options is refused."""
        if not self.place.exists(self.name):
            return None
        with self.place.reading(self.name) as file:
            kind, header, arrays = parse(file, self.path)
        if kind != "checkpoint" or header.get("print") != self.print:
            raise StorageError(f"{self.path}: a checkpoint of other data or options (or no checkpoint); remove it, or name another file")
        try:
            return _read_mark(header, arrays, template)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise StorageError(f"{self.path}: damaged, a part is missing or malformed ({error}); remove it to start anew") from error

    def done(self) -> None:
        """The fit is over: the file goes."""
        self.place.remove(self.name)


def _read_mark(header: Header, arrays: Arrays, template: Bank) -> Mark:
    banks = []
    for name, metric in zip(("bank", "plain"), header["metrics"], strict=True):
        blocks = [replace(block, u=arrays[f"{name}{k}.u"], prior_mean=arrays[f"{name}{k}.prior_mean"],
                          prior_sd=arrays[f"{name}{k}.prior_sd"]) for k, block in enumerate(template.blocks)]
        banks.append(replace(template, blocks=tuple(blocks), metric=Metric(**metric)))
    kernels = tuple(read_kernel(kernel) for kernel in header["kernels"])
    seen = tuple((arrays[f"seen{k}"][0], arrays[f"seen{k}"][1]) for k in range(header["seen"]))
    memory = {name.removeprefix("memory."): array for name, array in arrays.items() if name.startswith("memory.")}
    return Mark(bank=banks[0], plain=banks[1], seen=seen, priors=Priors(kernels, arrays["log_mass"], arrays["share"]), memory=memory,
                trace=tuple(Step(**step) for step in header["trace"]), **{name: header[name] for name in NUMBERS})


def fingerprint(responses: Responses, options: dict[str, Any]) -> str:
    """A short print of data and options, by which a mark is known again."""
    total = zlib.crc32(repr(sorted(options.items(), key=lambda pair: pair[0])).encode())
    for labels in (responses.people, responses.items, responses.models):
        total = zlib.crc32(repr(None if labels is None else labels.tolist()).encode(), total)
    for part in (responses.person, responses.item, responses.resp, responses.offsets, responses.weight):
        if part is not None:
            total = zlib.crc32(np.ascontiguousarray(part).tobytes(), total)
    return f"{total:08x}"
