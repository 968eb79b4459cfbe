"""What every solver of a Gaussian-process prior offers."""

from typing import Literal, Protocol, TypeAlias

from dynaesti.core import Array, Bools, Ints
from dynaesti.inference.solvers.state_space import StateSpacePosterior
from dynaesti.inference.solvers.weight_space import WeightPosterior

SolverName: TypeAlias = Literal["dense", "lowrank", "statespace"]
SOLVERS: tuple[SolverName, ...] = ("dense", "lowrank", "statespace")


class Solver(Protocol):
    """The priors of many jobs at their sites."""

    @property
    def site_start(self) -> Ints:
        """Where each job's sites begin."""

    def marginals(
        self,
        jobs: Ints,
        precision: Array,
        shift: Array,
        mean: Array,
        var: Array,
        log_partition: Array,
        proper: Bools,
    ) -> None:
        """Fill the posterior marginals at the sites of the chosen jobs."""


Posterior: TypeAlias = (
    WeightPosterior | StateSpacePosterior
)  # one curve given its sites: marginals, covariance, slopes, sample
