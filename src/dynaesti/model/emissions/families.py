"""Families of observations: votes, counts, measurements, ordered categories."""

from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, gammaln

from dynaesti.core import Array, Ints, as_numbers, as_vector, raise_where
from dynaesti.errors import InputError
from dynaesti.model.emissions.base import (
    ArrayEmissions,
    as_column,
    as_counts,
    as_positive,
    inside,
    refuse_extreme,
)
from dynaesti.model.items.polytomous import log_between
from dynaesti.model.links import POSITIVE, UNIT, Link, LinkedPoints


@dataclass(frozen=True, eq=False)
class Bernoulli(ArrayEmissions):
    """Yes/no answers: 1 with probability y."""

    votes: Array
    kind = "bernoulli"
    support = UNIT
    link = "probit"
    discrete = True

    def __post_init__(self) -> None:
        votes = as_vector(self.votes, "Bernoulli votes")
        raise_where(
            (votes != 0) & (votes != 1),
            "Bernoulli votes",
            "neither 0 nor 1",
            "code yes as 1 and no as 0",
        )
        self._set(votes=votes)

    def log_prob(self, at: LinkedPoints, rows: Ints) -> Array:
        return np.where(as_column(self.votes, rows, at) == 1, at.log, at.log_complement)

    def initial_latent(self, link: Link) -> Array:
        return link.latent(0.25 + 0.5 * self.votes)

    def plot_values(self) -> Array:
        return self.votes


@dataclass(frozen=True, eq=False)
class Binomial(ArrayEmissions):
    """`successes` out of `trials`, each with probability y."""

    successes: Array
    trials: Array
    kind = "binomial"
    support = UNIT
    link = "probit"
    discrete = True

    def __post_init__(self) -> None:
        successes = as_counts(self.successes, "Binomial successes")
        trials = as_vector(self.trials, "Binomial trials", successes.size)
        raise_where(
            (trials < 1) | (trials != np.round(trials)),
            "Binomial trials",
            "not whole numbers of at least 1",
            "give counts",
        )
        raise_where(
            successes > trials,
            "Binomial successes",
            "larger than their trials",
            "swap or repair them",
        )
        self._set(successes=successes, trials=trials)

    def log_prob(self, at: LinkedPoints, rows: Ints) -> Array:
        k = as_column(self.successes, rows, at)
        n = as_column(self.trials, rows, at)
        choose = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
        with np.errstate(invalid="ignore"):  # 0 · -inf where a side has no votes
            yes = np.where(k > 0, k * at.log, 0.0)
            no = np.where(n - k > 0, (n - k) * at.log_complement, 0.0)
        return choose + yes + no

    def initial_latent(self, link: Link) -> Array:
        return link.latent((self.successes + 0.5) / (self.trials + 1))

    def plot_values(self) -> Array:
        return self.successes / self.trials


@dataclass(frozen=True, eq=False)
class Poisson(ArrayEmissions):
    """Counts with mean y · exposure."""

    counts: Array
    exposure: Array = 1.0  # type: ignore[assignment]
    kind = "poisson"
    support = POSITIVE
    link = "log"
    unit_prior = False
    discrete = True

    def __post_init__(self) -> None:
        counts = as_counts(self.counts, "Poisson counts")
        self._set(
            counts=counts, exposure=as_positive(self.exposure, "Poisson exposure", counts.size)
        )

    def log_prob(self, at: LinkedPoints, rows: Ints) -> Array:
        k = as_column(self.counts, rows, at)
        e = as_column(self.exposure, rows, at)
        with np.errstate(invalid="ignore", over="ignore"):
            return np.where(k > 0, k * (at.log + np.log(e)), 0.0) - e * at.y - gammaln(k + 1)

    def initial_latent(self, link: Link) -> Array:
        return link.latent((self.counts + 0.5) / self.exposure)

    def plot_values(self) -> Array:
        return self.counts / self.exposure


@dataclass(frozen=True, eq=False)
class NegativeBinomial(ArrayEmissions):
    """Counts with mean μ = y · exposure and variance μ + μ²/size.

    Poisson in the limit of a large size.
    """

    counts: Array
    size: Array
    exposure: Array = 1.0  # type: ignore[assignment]
    kind = "negative_binomial"
    support = POSITIVE
    link = "log"
    unit_prior = False
    discrete = True

    def __post_init__(self) -> None:
        counts = as_counts(self.counts, "NegativeBinomial counts")
        self._set(
            counts=counts,
            size=as_positive(self.size, "NegativeBinomial size", counts.size),
            exposure=as_positive(self.exposure, "NegativeBinomial exposure", counts.size),
        )

    def log_prob(self, at: LinkedPoints, rows: Ints) -> Array:
        k, r, e = (as_column(v, rows, at) for v in (self.counts, self.size, self.exposure))
        log_odds = at.log + np.log(e) - np.log(r)  # log μ/r
        # Γ(k + r) / (Γ(r) k!) = 1 / (k B(k, r)): a difference of two log Γ would lose all
        # digits for large sizes
        some = np.maximum(k, 1.0)
        chosen = np.where(k > 0, k * log_odds - np.log(some) - betaln(some, r), 0.0)
        return np.asarray(chosen - (k + r) * np.logaddexp(0.0, log_odds))

    def initial_latent(self, link: Link) -> Array:
        return link.latent((self.counts + 0.5) / self.exposure)

    def plot_values(self) -> Array:
        return self.counts / self.exposure


@dataclass(frozen=True, eq=False)
class Gaussian(ArrayEmissions):
    """Values with their own standard deviations: exact sites, never tabulated."""

    values: Array
    sd: Array
    kind = "gaussian"
    unit_prior = False

    def __post_init__(self) -> None:
        values = as_vector(self.values, "Gaussian values")
        self._set(values=values, sd=as_positive(self.sd, "Gaussian sd", values.size))
        refuse_extreme("Gaussian values", values, self.sd)

    def log_prob(self, at: LinkedPoints, rows: Ints) -> Array:
        sd = as_column(self.sd, rows, at)
        return np.asarray(
            -0.5 * ((as_column(self.values, rows, at) - at.y) / sd) ** 2
            - np.log(sd * np.sqrt(2 * np.pi))
        )

    def gaussian(self) -> tuple[Array, Array]:
        return self.values, self.sd

    def unique_index(self) -> None:
        return None

    def initial_latent(self, link: Link) -> Array:
        return link.latent(inside(self.values, link))

    def plot_values(self) -> Array:
        return self.values


@dataclass(frozen=True, eq=False)
class StudentT(ArrayEmissions):
    """Values with heavy-tailed noise: scale and degrees of freedom each."""

    values: Array
    scale: Array
    df: Array = 4.0  # type: ignore[assignment]
    kind = "student_t"
    unit_prior = False

    def __post_init__(self) -> None:
        values = as_vector(self.values, "StudentT values")
        self._set(
            values=values,
            scale=as_positive(self.scale, "StudentT scale", values.size),
            df=as_positive(self.df, "StudentT df", values.size),
        )
        refuse_extreme("StudentT values", values, self.scale)

    def log_prob(self, at: LinkedPoints, rows: Ints) -> Array:
        m, s, v = (as_column(p, rows, at) for p in (self.values, self.scale, self.df))
        constant = gammaln((v + 1) / 2) - gammaln(v / 2) - 0.5 * np.log(v * np.pi) - np.log(s)
        return constant - (v + 1) / 2 * np.log1p(((m - at.y) / s) ** 2 / v)

    def initial_latent(self, link: Link) -> Array:
        return link.latent(inside(self.values, link))

    def plot_values(self) -> Array:
        return self.values


@dataclass(frozen=True, eq=False)
class Ordinal(ArrayEmissions):
    """Ordered grades 0…K with cut points.

    P(grade ≥ k) = σ(y − cut_k). Cuts are shared (K,) or per observation (n, K).
    """

    grades: Array
    cuts: Array
    kind = "ordinal"
    discrete = True

    def __post_init__(self) -> None:
        grades = as_counts(self.grades, "Ordinal grades")
        cuts = as_numbers(self.cuts, "Ordinal cuts")
        cuts = np.array(np.broadcast_to(cuts, (grades.size, cuts.size)) if cuts.ndim == 1 else cuts)
        if cuts.ndim != 2 or len(cuts) != grades.size or cuts.shape[1] == 0:
            raise InputError(
                f"Ordinal cuts: shape {cuts.shape} for {grades.size} grades; give (K,) or (n, K)"
            )
        rising = np.asarray(np.isfinite(cuts).all(axis=1) & (np.diff(cuts, axis=1) > 0).all(axis=1))
        raise_where(~rising, "Ordinal cuts", "not strictly rising", "sort the cut points")
        raise_where(
            grades > cuts.shape[1],
            "Ordinal grades",
            f"above the highest grade {cuts.shape[1]}",
            "add cuts or recode",
        )
        self._set(grades=grades, cuts=cuts)

    def log_prob(self, at: LinkedPoints, rows: Ints) -> Array:
        cuts = self.cuts[rows].reshape((-1,) + (1,) * (at.x.ndim - 1) + (self.cuts.shape[1],))
        return log_between(at.y[..., None] - cuts, as_column(self.grades, rows, at))
