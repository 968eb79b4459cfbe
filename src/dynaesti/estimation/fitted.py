"""What any fit keeps of its estimation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dynaesti.core import Array
from dynaesti.estimation.coding import ResponseCoding
from dynaesti.estimation.em import IterationRecord
from dynaesti.model import ItemBank, Kernel


@dataclass(frozen=True)
class FittedModel:
    """What a fit consists of, but for the people."""

    coding: ResponseCoding
    bank: ItemBank
    kernels: tuple[Kernel, ...]
    population: Array  # weight of each prior in the population
    covariance: tuple[Array, ...] | None  # of the items' parameters, block by block
    shared: Array | None  # the part of it that all items share: of the abilities' zero and log unit
    trace: tuple[IterationRecord, ...]
    converged: bool
    options: Mapping[str, Any]
    batches: tuple[str, ...]  # prints of the further answers that came in since
