"""Checkpoints of EM on disk, from which an interrupted fit goes on to the same result."""

import posixpath
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from dynaesti.core import Arrays, Folder, Header, read_archive, write_archive
from dynaesti.data import Responses, label_text
from dynaesti.errors import InputError, StorageError
from dynaesti.estimation.cohort_step import from_vector, to_vector
from dynaesti.estimation.em import EMState, IterationRecord
from dynaesti.estimation.population import PriorMixture
from dynaesti.model import (
    AbilityScale,
    ItemBank,
    ItemModel,
    cohort_header,
    kernel_header,
    read_cohort,
    read_kernel,
)

# fields of a state that are numbers, or words
PLAIN_FIELDS = (
    "stage",
    "iteration",
    "ep_tolerance",
    "small_steps",
    "best_objective",
    "last_objective",
    "is_extrapolated",
    "max_abs_ability",
)
BLOCK = ("u", "prior_mean", "prior_sd")


class Checkpoint:
    """A file with the last state of EM, written at most every so many seconds.

    Parameters
    ----------
    path : path
    fingerprint : str
        Fingerprint of data and options: a checkpoint with another one is refused.
    every : float
        Seconds between writes.
    """

    def __init__(self, path: str | PathLike[str], fingerprint: str, every: float = 20.0) -> None:
        if not isinstance(path, str | PathLike) or not fspath(path):
            raise InputError(f"checkpoint: expected a file name, got {path!r}")
        if Path(path).is_dir():
            raise InputError(f"checkpoint: {fspath(path)} is a folder; name a file in it")
        folder, name = posixpath.split(fspath(path).replace("\\", "/"))
        self.folder = Folder(folder or ".")
        self.name = name
        self.every = every
        self.written = time.monotonic()
        self.fingerprint = fingerprint

    @property
    def path(self) -> str:
        """Path of the file."""
        return self.folder.path(self.name)

    def __call__(self, state: EMState) -> None:
        """Write the state, if the last write is long enough ago."""
        if time.monotonic() - self.written < self.every:
            return
        arrays: Arrays = {
            "log_prior": state.priors.log_prior,
            "weights": state.priors.weights,
            **{f"people.{name}": array for name, array in (state.people or {}).items()},
        }
        for name, bank in (("bank", state.bank), ("plain", state.plain_bank)):
            for k, block in enumerate(bank.blocks):
                arrays.update({f"{name}{k}.{part}": getattr(block, part) for part in BLOCK})
        for k, pair in enumerate(state.history):
            arrays[f"history{k}"] = np.stack(pair)
        cohort = cohort_header(state.priors.cohort, arrays)
        if state.plain_cohort is not None:
            arrays["cohort.plain"] = to_vector(state.plain_cohort)
        if state.cohort_information is not None:
            arrays["cohort.information"] = state.cohort_information
        scales = [state.bank.ability_scale, state.plain_bank.ability_scale]
        header = {name: getattr(state, name) for name in PLAIN_FIELDS} | {
            "fingerprint": self.fingerprint,
            "ability_scales": [asdict(scale) for scale in scales],
            "kernels": [kernel_header(kernel) for kernel in state.priors.kernels],
            "history": len(state.history),
            "cohort": cohort,
            "trace": [asdict(line) for line in state.trace],
        }
        with self.folder.writing(self.name) as file:
            write_archive(file, "checkpoint", header, arrays, compressed=False)
        self.written = time.monotonic()

    def resume(self, template: ItemBank, stages: Sequence[str]) -> EMState | None:
        """The state on disk, or None; a checkpoint of other data or options is refused."""
        if not self.folder.exists(self.name):
            return None
        with self.folder.reading(self.name) as file:
            kind, header, arrays = read_archive(file, self.path)
        if kind != "checkpoint" or header.get("fingerprint") != self.fingerprint:
            raise StorageError(
                f"{self.path}: a checkpoint of other data or options (or no checkpoint); remove "
                "it, or name another file"
            )
        try:
            state = _read_state(header, arrays, template)
            stages.index(state.stage)  # ValueError for an unknown stage
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise StorageError(
                f"{self.path}: damaged or of an earlier version, a part is missing or malformed "
                f"({error}); remove it to start anew"
            ) from error
        return state

    def done(self) -> None:
        """Remove the file when the fit is complete."""
        self.folder.remove(self.name)


def _read_state(header: Header, arrays: Arrays, template: ItemBank) -> EMState:
    """The state of EM from the header and arrays of a file."""
    banks = []
    for name, ability_scale in zip(("bank", "plain"), header["ability_scales"], strict=True):
        blocks = [
            replace(
                block,
                u=arrays[f"{name}{k}.u"],
                prior_mean=arrays[f"{name}{k}.prior_mean"],
                prior_sd=arrays[f"{name}{k}.prior_sd"],
            )
            for k, block in enumerate(template.blocks)
        ]
        scale = AbilityScale(**ability_scale)
        banks.append(replace(template, blocks=tuple(blocks), ability_scale=scale))
    kernels = tuple(read_kernel(kernel) for kernel in header["kernels"])
    cohort = read_cohort(header["cohort"], arrays)
    history = tuple(
        (arrays[f"history{k}"][0], arrays[f"history{k}"][1]) for k in range(header["history"])
    )
    people = {
        name.removeprefix("people."): array
        for name, array in arrays.items()
        if name.startswith("people.")
    }
    return EMState(
        bank=banks[0],
        plain_bank=banks[1],
        history=history,
        priors=PriorMixture(kernels, arrays["log_prior"], arrays["weights"], cohort),
        plain_cohort=None if cohort is None else from_vector(cohort, arrays["cohort.plain"]),
        cohort_information=arrays.get("cohort.information"),
        people=people,
        trace=tuple(IterationRecord(**line) for line in header["trace"]),
        **{name: header[name] for name in PLAIN_FIELDS},
    )


def in_full(value: Any) -> str:
    """A complete text of an option's value, equal in every process.

    `repr` would abridge frames, and name functions by their address.
    """
    if isinstance(value, ItemModel):
        return value.signature()
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


def fingerprint(responses: Responses, options: Mapping[str, Any]) -> str:
    """A short text that identifies data and options, to recognise their checkpoint."""
    total = zlib.crc32(repr(sorted(options.items(), key=lambda pair: pair[0])).encode())
    for labels in (responses.people, responses.items, responses.models):
        total = zlib.crc32(repr(None if labels is None else labels.tolist()).encode(), total)
    for part in (
        responses.person,
        responses.item,
        responses.resp,
        responses.offsets,
        responses.weight,
        responses.group,
        *(column.values for column in responses.covariates.values()),
    ):
        if part is not None:
            total = zlib.crc32(np.ascontiguousarray(part).tobytes(), total)
    return f"{total:08x}"
