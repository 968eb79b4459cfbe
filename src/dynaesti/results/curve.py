"""Curve: a fitted curve as a user holds it.

A mixture of Gaussian processes behind a link, asked at any times. The class is a face: what it
computes is in `curve_values`, `curve_diagnostics`, `curve_updates` and `curve_priors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dynaesti.core import (
    Array,
    Arrays,
    as_vector,
    check_size,
    save_archive,
    single_blas_thread,
    whole_number,
)
from dynaesti.data import frame_kind, make_frame
from dynaesti.inference import GraftedCurve, Marginals, Observations, SolverName
from dynaesti.model import BUILT_IN, Effects, Link
from dynaesti.results.curve_diagnostics import (
    LeaveOneOutMixture,
    influence_columns,
    is_corrected,
    leave_one_out,
    warn_if_unconverged,
    warn_if_uncorrected,
    with_second_order,
)
from dynaesti.results.curve_effects import curve_effect_columns
from dynaesti.results.curve_priors import (
    MIN_WEIGHT,
    WeightedPrior,
    bandwidth_columns,
    median_bandwidth,
    weigh_priors,
)
from dynaesti.results.curve_residuals import randomised_residuals, width_sentence
from dynaesti.results.curve_updates import update_curve
from dynaesti.results.curve_values import (
    Derivative,
    derivative,
    latent_covariance,
    latent_marginals,
    log_density,
    moments,
    sample_curves,
)
from dynaesti.results.frames import band, median_columns
from dynaesti.results.io.curve_file import curve_header
from dynaesti.results.plotting.curve_data import curve_plot_data, influence_data, observed_data
from dynaesti.tables import as_frame, with_table

if TYPE_CHECKING:
    from dynaesti.inference import Audit

SHOWN_TIMES = 9  # of a curve in a notebook


@dataclass(frozen=True, eq=False)
class Curve:
    """A fitted curve, as `CurvFiFE.fit`, `Fit.curve` and `load` return it.

    The posterior is a mixture of Gaussian processes, one for each prior, behind a link. Values are
    on the link's scale; `curve.latent` is the same curve before the link. A curve never changes:
    `update` and `refined` return new ones.

    Times may be numbers, dates or ISO text, as in the data; any times can be asked for, also
    between and beyond those of the data.

    Parameters
    ----------
    observations : Observations
        Times, emissions, link and prior mean.
    priors : tuple of WeightedPrior
        Kernels with their posterior weights.
    components : tuple of GraftedCurve or None
        The posterior under each prior, None where its weight is negligible.
    method : str, default "given"
        How hyper-parameters were found: "given", "learn", "evidence", "loo" or "cv".
    frame : str, optional
        Kind of data frame that came in and goes out, such as "pandas".
    shown_link : Link, optional
        Link of the values, where it is not that of the observations.
    solver : {"dense", "lowrank", "statespace"}, optional
        Default: the cheapest that is exact.
    column_effects : Effects, optional
        Columns of effects beside the curve.
    refining : bool, default False
        Whether the curve is corrected to second order wherever that can be done, also after
        updates.

    Examples
    --------
    >>> import dynaesti as dy
    >>> votes = dy.Bernoulli([0, 0, 1, 0, 1, 1, 1, 1])
    >>> curve = dy.CurvFiFE(bandwidth=3.0).fit(range(8), votes)
    >>> curve.converged
    True
    >>> curve.mean([0, 7]).round(1).tolist()
    [0.3, 0.8]
    >>> lower, upper = curve.interval([3.5, 10.0], level=0.9)
    >>> bool((lower < upper).all())
    True
    >>> curve.sample([0, 7], size=5, seed=1).shape
    (5, 2)
    >>> bool(curve.derivative([3.5]).rising[0] > 0.5)
    True
    >>> len(curve.update([8, 9], dy.Bernoulli([1, 0])).loo)
    10
    """

    observations: Observations
    priors: tuple[WeightedPrior, ...]
    components: tuple[GraftedCurve | None, ...]
    method: str = "given"
    frame: str | None = None
    shown_link: Link | None = None
    solver: SolverName | None = None
    refining: bool = False
    column_effects: Effects | None = None

    # --- parts ----------------------------------------------------------------------------------

    @property
    def link(self) -> Link:
        """Monotone map from the latent curve to the values."""
        return self.shown_link or self.observations.link

    @property
    def latent(self) -> Curve:
        """The curve before the link."""
        return replace(self, shown_link=BUILT_IN["identity"])

    def weighted_components(self) -> tuple[Array, Array, list[GraftedCurve]]:
        """Components that carry the curve.

        Returns
        -------
        weights : array (n_components,)
            Posterior weights, which add up to 1.
        log_priors : array (n_components,)
            Log prior masses.
        components : list of GraftedCurve
            The posterior under each prior.
        """
        kept = [
            (p.weight, p.log_prior, c)
            for p, c in zip(self.priors, self.components, strict=True)
            if c is not None and p.weight > MIN_WEIGHT
        ]
        weights = np.array([w for w, _, _ in kept])
        return weights / weights.sum(), np.array([p for _, p, _ in kept]), [c for _, _, c in kept]

    @property
    def converged(self) -> bool:
        """Whether EP converged for every component that counts."""
        return all(c.converged for c in self.weighted_components()[2])

    @property
    def sweeps(self) -> int:
        """Sweeps of EP of the slowest component that counts."""
        return max(c.sweeps for c in self.weighted_components()[2])

    @property
    def log_evidence(self) -> float:
        """Log probability of all emissions under the prior.

        Averaged over the priors where hyper-parameters were learned, else that of the best one.
        """
        if len(self.priors) == 1 or self.method != "learn":
            return max(self.priors, key=lambda p: p.weight).log_evidence
        return float(np.logaddexp.reduce([p.log_prior + p.log_evidence for p in self.priors]))

    @property
    def bandwidths(self) -> Any:
        """The priors as a frame: bandwidth, kernel, log_evidence, weight.

        The bandwidth is that of the kernel's first summand that has one, else inf.
        """
        return make_frame(bandwidth_columns(self.priors), self.frame)

    @property
    def bandwidth(self) -> float:
        """Median bandwidth under the weights, in units of time."""
        return median_bandwidth(self.priors)

    @property
    def effects(self) -> Any:
        """Effects of columns on single emissions, on the latent scale, and the sizes of noise.

        Returns
        -------
        frame
            Columns term, estimate, se, lower, upper (95 %), z, p; a row for each column of the
            formula. A block, such as ``random(house)``, has a row with its size, the standard
            deviation of its effects, then one for each of its levels, without z and p; noise has
            one for its size.

        Raises
        ------
        InputError
            If the curve has neither effects nor noise.

        Examples
        --------
        >>> import dynaesti as dy
        >>> polls = dy.Binomial([510, 540, 505, 552, 498, 561], trials=1000)
        >>> houses = {"house": ["A", "B", "A", "B", "A", "B"]}
        >>> curve = dy.CurvFiFE(bandwidth=5.0, effects="random(house)").fit(range(6), polls, houses)
        >>> list(curve.effects["term"])
        ['sd of random(house)', 'random(house)[A]', 'random(house)[B]']
        """
        return make_frame(curve_effect_columns(self), self.frame)

    # --- values ---------------------------------------------------------------------------------

    def marginals(self, t: Any) -> Marginals:
        """Latent marginals of every component.

        Parameters
        ----------
        t : times (n_times,)

        Returns
        -------
        Marginals
            Weights, means and sds (n_components, n_times).
        """
        return latent_marginals(self, t)

    def mean(self, t: Any) -> Array:
        """Mean of the curve at each time.

        Under the log link few data leave a heavy tail above: the median is steadier there.

        Parameters
        ----------
        t : times (n_times,)

        Returns
        -------
        array (n_times,)
        """
        return self._moments(t)[0]

    def sd(self, t: Any) -> Array:
        """Standard deviation of the curve at each time.

        Parameters
        ----------
        t : times (n_times,)

        Returns
        -------
        array (n_times,)
        """
        return self._moments(t)[1]

    def _moments(self, t: Any) -> tuple[Array, Array]:
        return moments(self, t, lambda: self._default_audit)

    @cached_property
    def _default_audit(self) -> Audit:
        return self.audit()

    def quantile(self, t: Any, q: Any) -> Array:
        """Quantiles of the curve, exact under the link.

        Parameters
        ----------
        t : times (n_times,)
        q : float or sequence of float
            Probabilities between 0 and 1.

        Returns
        -------
        array (n_times,) or (n_q, n_times)
            One row for each of several `q`.
        """
        rows = self.marginals(t).quantiles(as_vector(q, "q"), self.link)
        return rows[0] if np.ndim(q) == 0 else rows

    def median(self, t: Any) -> Array:
        """Median of the curve at each time, exact under the link.

        Parameters
        ----------
        t : times (n_times,)

        Returns
        -------
        array (n_times,)
        """
        return self.quantile(t, 0.5)

    def interval(self, t: Any, level: float = 0.7) -> tuple[Array, Array]:
        """Equal-tailed credible band.

        Parameters
        ----------
        t : times (n_times,)
        level : float, default 0.7
            Probability of the band at each time, between 0 and 1.

        Returns
        -------
        lower, upper : array (n_times,)
        """
        lower, upper = self.quantile(t, band(level))
        return lower, upper

    def covariance(self, t: Any) -> Array:
        """Latent covariance between all pairs of times.

        Parameters
        ----------
        t : times (n_times,)

        Returns
        -------
        array (n_times, n_times)
        """
        return latent_covariance(self, t)

    def sample(self, t: Any, size: int = 1, seed: int | np.random.Generator | None = None) -> Array:
        """Whole curves drawn from the posterior.

        Parameters
        ----------
        t : times (n_times,)
        size : int, default 1
            Number of curves.
        seed : int or numpy.random.Generator, optional
            Without one every call draws anew.

        Returns
        -------
        array (size, n_times)
            Each row is one curve, drawn jointly at all times.
        """
        return sample_curves(self, t, size, seed)

    def log_density(self, t: Any, y: Any) -> float:
        """Joint log density of the curve passing through points.

        Parameters
        ----------
        t : times (n_times,)
        y : array (n_times,)
            Values on the link's scale.

        Returns
        -------
        float

        Raises
        ------
        InputError
            If a value is outside the link's range.
        """
        return log_density(self, t, y)

    def derivative(self, t: Any) -> Derivative:
        """Slope of the curve at each time, on the link's scale.

        Parameters
        ----------
        t : times (n_times,)

        Returns
        -------
        Derivative
            Arrays mean, sd and rising (the probability that the curve rises).
        """
        return derivative(self, t)

    # --- checks and updates ---------------------------------------------------------------------

    @cached_property
    def left_out(self) -> LeaveOneOutMixture:
        return leave_one_out(self)

    @property
    def loo(self) -> Array:
        """Log density of each emission given all others, (n_emissions,), in the order given."""
        return self.left_out.log_density

    def residuals(self, seed: int = 0) -> Any:
        """Residuals of all emissions, each predicted from the others.

        They are randomised quantile residuals: standard normal where the model is right. Wider ones
        mean that the likelihood is too sure of itself (`Noise` learns by how much).

        Parameters
        ----------
        seed : int, default 0
            Of where a count or category lies within its own probability.

        Returns
        -------
        frame
            Columns time, residual (NaN for tables and functions), loo (log predictive density).

        Examples
        --------
        >>> import dynaesti as dy
        >>> polls = dy.Binomial([510, 540, 505, 552, 498, 561], trials=1000)
        >>> list(dy.CurvFiFE(bandwidth=5.0).fit(range(6), polls).residuals().columns)
        ['time', 'residual', 'loo']
        """
        columns = {
            "time": self.observations.axis.restore(self.observations.offsets),
            "residual": randomised_residuals(self, seed),
            "loo": self.loo,
        }
        return make_frame(columns, self.frame)

    def influence(self) -> Any:
        """How far each emission moves the latent curve, and the effects, that it sees.

        Returns
        -------
        frame
            A row for each emission: time, loo (see `loo`), shift (latent mean with the emission
            minus that without it) and shift_in_sd, in standard deviations of the curve.
        """
        return make_frame(influence_columns(self, self.left_out), self.frame)

    @single_blas_thread()
    def update(self, times: Any, emissions: Any, covariates: Any = None) -> Curve:
        """The curve with further emissions, under the same priors.

        Equals a refit with hyper-parameters held, but starts from the converged sites.

        Parameters
        ----------
        times : times (n_emissions,)
            At any times, also before those of the data.
        emissions : Emissions
            Such as ``Bernoulli([0, 1])``.
        covariates : frame, mapping or path, optional
            Columns that the curve's effects need, a row for each emission.

        Returns
        -------
        Curve
        """
        return warn_if_unconverged(update_curve(self, times, emissions, covariates))

    def refined(self) -> Curve:
        """The curve with sds, evidence and weights corrected to second order.

        Grafting's own error in sds is a few tenths of a percent, a few percent where nearly all
        answers are alike; this takes most of it away at the cost of a few sweeps. Priors without a
        form in few weights, and those whose correction would be large, stay as they are, with a
        warning: `audit` is for these.

        Returns
        -------
        Curve
        """
        curve, left = with_second_order(self)
        warn_if_uncorrected(left)
        return curve

    def refined_if_possible(self) -> Curve:
        """The curve corrected to second order where that can be done, without a warning.

        Updates keep it corrected. `CurvFiFE` does this by default.
        """
        return replace(with_second_order(self)[0], refining=True)

    @single_blas_thread()
    def audit(self, draws: int = 20_000, seed: int = 0) -> Audit:
        """Compare the curve with its exact posterior, by importance sampling.

        Parameters
        ----------
        draws : int, default 20000
            Number of draws, at least 200.
        seed : int, default 0

        Returns
        -------
        Audit
            Whether the Gaussian is safe here (`safe`, `verdict`), and what would be right.

        Examples
        --------
        >>> import dynaesti as dy
        >>> curve = dy.CurvFiFE(bandwidth=3.0).fit(range(4), dy.Bernoulli([0, 1, 1, 1]))
        >>> curve.audit(draws=2000).safe
        True
        """
        from dynaesti.inference import audit_curve

        return audit_curve(self, draws, seed)

    def exact(self, t: Any, draws: int = 20_000, seed: int = 0) -> Any:
        """Marginals of the exact posterior, from the draws of an audit.

        Parameters
        ----------
        t : times (n_times,)
        draws : int, default 20000
            Number of draws, at least 200.
        seed : int, default 0

        Returns
        -------
        frame
            Columns time, mean, sd, lower, median, upper.
        """
        return self.audit(draws, seed).to_frame(t)

    # --- frames, figures, files -----------------------------------------------------------------

    def grid(self, points: int = 200) -> npt.NDArray[Any]:
        """Evenly spaced times from the first to the last emission.

        Parameters
        ----------
        points : int, default 200

        Returns
        -------
        array (points,)
            Numbers or dates, as in the data.
        """
        first, last = self.observations.span
        check_size(whole_number(points, "points", 1), "points")
        return self.observations.axis.restore(np.linspace(first, last, points))

    def to_frame(self, t: Any = None, level: float = 0.7, kind: str | None = None) -> Any:
        """Moments, median and band as a frame.

        Parameters
        ----------
        t : times (n_times,), optional
            Default: 200 times over the data's span.
        level : float, default 0.7
            Probability of the equal-tailed band.
        kind : str, optional
            Kind of frame, such as "pandas". Default: that of `t` or of the data.

        Returns
        -------
        frame
            Columns time, mean, sd, lower, median, upper.
        """
        times = self.grid() if t is None else t
        columns = median_columns(
            self.marginals(times),
            self._moments(times),
            {"time": np.asarray(times)},
            level,
            self.link,
        )
        return make_frame(columns, kind or frame_kind(t) or self.frame)

    def plot(self, ax: Any = None, t: Any = None, level: float = 0.7) -> Any:
        """Draw median, band and emissions with matplotlib.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Default: new ones.
        t : times (n_times,), optional
            Default: 200 times over the data's span.
        level : float, default 0.7
            Probability of the equal-tailed band.

        Returns
        -------
        matplotlib axes
        """
        from dynaesti.results.plotting.draw import plot_curve

        data = self.plot_data(t, level)
        return plot_curve(data, self.observed_data(), self.link.name, level, ax)

    def plot_data(self, t: Any = None, level: float = 0.7) -> Any:
        """Median and band, as `plot` draws them.

        Parameters
        ----------
        t : times (n_times,), optional
            Default: 200 times over the data's span.
        level : float, default 0.7
            Probability of the equal-tailed band.

        Returns
        -------
        frame
            Columns time, median, lower, upper.
        """
        return curve_plot_data(self, self.grid() if t is None else t, level)

    def observed_data(self) -> Any:
        """The emissions that have values to show, as `plot` draws them.

        Returns
        -------
        frame
            Columns time, value; without rows where emissions have none, or the curve is shown on
            another scale than theirs.
        """
        return observed_data(self)

    def plot_influence(self, ax: Any = None, level: float = 0.7) -> Any:
        """Draw how far each emission moves the curve: marks on its median, larger for more.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Default: new ones.
        level : float, default 0.7
            Probability of the equal-tailed band.

        Returns
        -------
        matplotlib axes
        """
        from dynaesti.results.plotting.draw_people import plot_influence

        return plot_influence(self.plot_data(level=level), self.plot_influence_data(), ax)

    def plot_influence_data(self) -> Any:
        """What each emission does to the curve, as `plot_influence` draws it.

        Returns
        -------
        frame
            That of `influence`, and the curve's median.
        """
        return influence_data(self)

    def save(self, path: str | PathLike[str]) -> Path:
        """Save the curve as one file without pickles, which `dynaesti.load` opens.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        pathlib.Path

        Raises
        ------
        StorageError
            If the file cannot be written.
        """
        arrays = Arrays()
        return save_archive(path, "curve", curve_header(self, arrays), arrays)

    def summary(self) -> str:
        """Data, bandwidth, evidence and convergence in a few sentences."""
        obs = self.observations
        first, last = obs.span
        verdict = "converged in" if self.converged else "did NOT converge in"
        care = "" if self.converged else " Treat the bands with care."
        second_order = ", sds to second order" if is_corrected(self) else ""
        return (
            f"{len(obs.emissions)} emissions at {obs.instants.size} instants, over "
            f"{last - first:.6g} ({obs.axis.unit}); {obs.link.name} link. Bandwidth "
            f"{self.bandwidth:.4g} ({self.method}), {len(self.weighted_components()[2])} of "
            f"{len(self.priors)} priors carry the curve; log evidence {self.log_evidence:.2f}; "
            f"{verdict} {self.sweeps} sweeps{second_order}.{care}{width_sentence(self)}"
        )

    def __repr__(self) -> str:
        return f"<Curve: {self.summary()}>"

    def _repr_html_(self) -> str:
        return with_table(self.summary(), as_frame(self.to_frame(self.grid(SHOWN_TIMES))))


def from_components(
    observations: Observations,
    components: Sequence[GraftedCurve],
    log_priors: Sequence[float],
    method: str,
    frame: str | None,
    solver: SolverName | None,
) -> Curve:
    """A curve from grafted priors, weighted by evidence × prior mass."""
    priors, stored = weigh_priors(observations, components, log_priors)
    return Curve(observations, priors, stored, method, frame, None, solver)
