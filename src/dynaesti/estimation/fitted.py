"""What any fit keeps of its estimation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dynaesti.core import Array
from dynaesti.estimation.coding import Coding
from dynaesti.estimation.em import Step
from dynaesti.model import Bank, Kernel


@dataclass(frozen=True)
class Common:
    """What a fit consists of, but for the people."""

    coding: Coding
    bank: Bank
    kernels: tuple[Kernel, ...]
    population: Array  # weight of each prior in the population
    covariance: tuple[Array, ...] | None  # of the items' parameters, block by block
    shared: Array | None  # the part of it that all items share: of the abilities' zero and log unit
    trace: tuple[Step, ...]
    converged: bool
    options: Mapping[str, Any]
    batches: tuple[str, ...]  # prints of the further answers that came in since
