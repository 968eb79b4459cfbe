"""What any fit keeps of its estimation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dynaesti.core import Array
from dynaesti.estimation.coding import ResponseCoding
from dynaesti.estimation.em import IterationRecord
from dynaesti.estimation.population import PriorMixture
from dynaesti.model import ItemBank, Kernel


@dataclass(frozen=True)
class FittedModel:
    """What a fit consists of, but for the people."""

    coding: ResponseCoding
    bank: ItemBank
    priors: PriorMixture
    covariance: tuple[Array, ...] | None  # of the items' parameters, block by block
    shared: (
        Array | None
    )  # (2, 2) the part of it that all items share: of the abilities' zero and log unit
    trace: tuple[IterationRecord, ...]
    converged: bool
    options: Mapping[str, Any]
    batches: tuple[str, ...]  # fingerprints of the responses that came in since

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Kernels that the population mixes."""
        return self.priors.kernels

    @property
    def population(self) -> Array:
        """Weight of each kernel in the population."""
        return self.priors.weights
