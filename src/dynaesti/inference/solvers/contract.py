"""The interface that all solvers of a Gaussian-process prior share."""

from typing import Literal, Protocol, TypeAlias

from dynaesti.core import Array, Bools, Ints
from dynaesti.inference.sites import Moments, NaturalGaussian
from dynaesti.inference.solvers.state_space import StateSpacePosterior
from dynaesti.inference.solvers.weight_space import WeightPosterior

SolverName: TypeAlias = Literal["dense", "lowrank", "statespace"]
SOLVERS: tuple[SolverName, ...] = ("dense", "lowrank", "statespace")


class Solver(Protocol):
    """The Gaussian-process priors of many curves at their sites."""

    @property
    def site_start(self) -> Ints:
        """Where each curve's sites begin: (n_curves + 1,)."""

    @property
    def size(self) -> int:
        """Numbers that the solver keeps in memory."""

    def marginals(
        self,
        curves: Ints,
        latent_sites: NaturalGaussian,
        posterior: Moments,
        log_partition: Array,
        proper: Bools,
    ) -> None:
        """Compute posterior moments at the sites of the chosen curves, and log ∫ prior × sites.

        Parameters
        ----------
        curves : array of int
        latent_sites : NaturalGaussian (n_sites,)
        posterior : Moments (n_sites,)
            Receives the moments.
        log_partition : array (n_curves,)
            Receives log ∫ prior × sites.
        proper : bool array (n_curves,)
            Receives whether the posterior of each chosen curve is proper.
        """


# one curve given its sites: marginals, covariance, slopes, sample
Posterior: TypeAlias = WeightPosterior | StateSpacePosterior
