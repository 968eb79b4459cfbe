"""The fitted model: what every fit keeps of its estimation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dynaesti.core import Array
from dynaesti.estimation.coding import ResponseCoding
from dynaesti.estimation.em import IterationRecord
from dynaesti.estimation.item_drift import ItemDrift
from dynaesti.estimation.item_nodes import ItemNodes
from dynaesti.estimation.population import PriorMixture
from dynaesti.model import ItemBank, Kernel


@dataclass(frozen=True)
class FittedModel:
    """All parts of a fit except the people."""

    coding: ResponseCoding
    bank: ItemBank
    priors: PriorMixture
    covariance: tuple[Array, ...] | None  # of the items' parameters, block by block
    # (2, 2) the part of the covariance that all items share: of the abilities' zero and log unit
    scale_covariance: Array | None
    trace: tuple[IterationRecord, ...]
    converged: bool
    options: Mapping[str, Any]
    batches: tuple[str, ...]  # fingerprints of responses added after the fit
    max_abs_ability: float  # largest of all people, which likelihood tables must cover
    # to predict with where items have few responses, block by block; None where they have many
    item_nodes: tuple[ItemNodes, ...] | None
    # how items become easier or harder, to predict with; None where they show no drift
    item_drift: ItemDrift | None

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Kernels that the population mixes."""
        return self.priors.kernels

    @property
    def population(self) -> Array:
        """Weight of each kernel in the population."""
        return self.priors.weights
