"""Emission families: votes, counts, measurements and ordered categories."""

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
    """Yes/no observations: P(1 | y) = y.

    Parameters
    ----------
    votes : array (n,)
        0 or 1.

    Raises
    ------
    InputError
        If an observation is impossible; the message says which and how many.

    Examples
    --------
    >>> import dynaesti as dy
    >>> votes = dy.Bernoulli([1, 0, 1])
    >>> len(votes), votes.link
    (3, 'probit')
    """

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
    """Successes in several trials: P(k | y) = C(n, k) yᵏ (1 − y)ⁿ⁻ᵏ.

    Parameters
    ----------
    successes : array (n,)
        Number of successes k.
    trials : array (n,) or int
        Number of trials n, at least 1 and at least k.

    Raises
    ------
    InputError
        If an observation is impossible; the message says which and how many.

    Examples
    --------
    >>> import dynaesti as dy
    >>> polls = dy.Binomial(successes=[520, 430], trials=1000)
    >>> polls.plot_values().tolist()
    [0.52, 0.43]
    """

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


class CountEmissions(ArrayEmissions):
    """Counts, whose rates are positive: behind a log link, with mean and amplitude learned."""

    support = POSITIVE
    link = "log"
    unit_prior = False
    discrete = True


@dataclass(frozen=True, eq=False)
class Poisson(CountEmissions):
    """Counts: k ~ Poisson(y · exposure).

    Parameters
    ----------
    counts : array (n,)
        Whole numbers from 0.
    exposure : array (n,) or float, default 1
        Positive: time, area or size in which the events were counted.

    Raises
    ------
    InputError
        If an observation is impossible; the message says which and how many.

    Examples
    --------
    >>> import dynaesti as dy
    >>> events = dy.Poisson([3, 0, 10], exposure=[1.0, 1.0, 5.0])
    >>> events.plot_values().tolist()  # rates
    [3.0, 0.0, 2.0]
    """

    counts: Array
    exposure: Array = 1.0  # type: ignore[assignment]
    kind = "poisson"

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
class NegativeBinomial(CountEmissions):
    """Counts with more spread than Poisson's: mean μ = y · exposure, variance μ + μ²/size.

    P(k | y) = Γ(k + size) / (Γ(size) k!) · (μ/(μ + size))ᵏ · (size/(μ + size))^size. A very large
    size is the Poisson family.

    Parameters
    ----------
    counts : array (n,)
        Whole numbers from 0.
    size : array (n,) or float
        Positive: smaller means more spread.
    exposure : array (n,) or float, default 1
        Positive: time, area or size in which the events were counted.

    Raises
    ------
    InputError
        If an observation is impossible; the message says which and how many.

    Examples
    --------
    >>> import dynaesti as dy
    >>> events = dy.NegativeBinomial([3, 0, 10], size=2.0)
    >>> len(events), events.link
    (3, 'log')
    """

    counts: Array
    size: Array
    exposure: Array = 1.0  # type: ignore[assignment]
    kind = "negative_binomial"

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
    """Measurements with normal noise: value ~ N(y, sd²).

    Inference is exact for these: their likelihoods are Gaussian sites as they are.

    Parameters
    ----------
    values : array (n,)
        Measurements, in the unit of the curve.
    sd : array (n,) or float
        Standard deviation of the noise, positive, in the same unit.

    Raises
    ------
    InputError
        If an observation is impossible; the message says which and how many.

    Examples
    --------
    >>> import dynaesti as dy
    >>> curve = dy.CurvFiFE(dy.RBF(1.0, amplitude=1.0), mean=0.0).fit(
    ...     [0.0, 1.0, 2.0], dy.Gaussian([0.1, 0.9, 2.2], sd=0.2)
    ... )
    >>> len(curve.interval([0.5, 1.5]))
    2
    """

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
    """Measurements with heavy-tailed noise: (value − y)/scale ~ Student t with df degrees.

    Outliers pull the curve less than with `Gaussian`.

    Parameters
    ----------
    values : array (n,)
        Measurements, in the unit of the curve.
    scale : array (n,) or float
        Scale of the noise, positive, in the same unit.
    df : array (n,) or float, default 4
        Degrees of freedom, positive: smaller means heavier tails.

    Raises
    ------
    InputError
        If an observation is impossible; the message says which and how many.

    Examples
    --------
    >>> import dynaesti as dy
    >>> values = dy.StudentT([0.1, 0.9, 25.0], scale=0.2)
    >>> len(values), values.df.tolist()
    (3, [4.0, 4.0, 4.0])
    """

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
    """Ordered grades 0 … K: P(grade ≥ k | y) = σ(y − cut_k), σ(x) = 1 / (1 + e⁻ˣ).

    Parameters
    ----------
    grades : array (n,)
        Whole numbers from 0 to K.
    cuts : array (K,) or (n, K)
        Strictly increasing cut points on the scale of the curve, for all observations or for each.

    Raises
    ------
    InputError
        If an observation is impossible; the message says which and how many.

    Examples
    --------
    >>> import dynaesti as dy
    >>> grades = dy.Ordinal([0, 2, 1], cuts=[-1.0, 1.0])
    >>> len(grades), grades.cuts.shape
    (3, (3, 2))
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
