"""Emission families: log f_i(y) of what was observed, vectorised, with parameters per observation.

Every family is a frozen table of arrays with one row an observation. `log_prob(points, rows)` evaluates the chosen
observations at points of shape (rows, anything). A list of families, or of functions, is laid end to end by `as_emissions`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.special import betaln, gammaln

from dynaesti.arrays import Array, Ints, as_numbers, as_vector, refuse
from dynaesti.errors import EmissionError, InputError
from dynaesti.items import item_model, log_between
from dynaesti.links import POSITIVE, REAL, UNIT, Link, Points


class Emissions:
    """Many observations of one kind. Subclasses hold arrays of equal length and one formula."""

    kind: ClassVar[str]
    support: ClassVar[str] = REAL  # what y may be
    link: ClassVar[str] = "identity"  # the link when the user names none
    unit_prior: ClassVar[bool] = True  # y on a scale where mean 0 and variance 1 are a fair prior
    discrete: ClassVar[bool] = (
        False  # whether f is a probability, not a density or a likelihood known up to a factor
    )

    def __len__(self) -> int:
        raise NotImplementedError

    def log_prob(self, at: Points, rows: Ints) -> Array:
        """Log f_i(y) for the observations `rows`, at points of shape (len(rows), …)."""
        raise NotImplementedError

    def distinct(self) -> Ints | None:
        """For each observation the index of the first one with the same likelihood; None when all may differ."""
        return None

    def gaussian(self) -> tuple[Array, Array] | None:
        """(observations, sds) when the likelihood is exactly Gaussian in y."""
        return None

    def rough(self, link: Link) -> Array | None:  # noqa: ARG002
        """A crude latent value for each observation, to centre a learned prior; None where there is none."""
        return None

    def observed(self) -> Array | None:
        """What to draw for each observation on the link's scale; None where there is nothing to draw."""
        return None

    def take(self, rows: Ints) -> "Emissions":
        """The chosen observations, `rows` rising."""
        raise NotImplementedError


class ArrayEmissions(Emissions):
    """A family whose dataclass fields are arrays over observations (first axis)."""

    def _columns(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(
            next(value for value in self._columns().values() if isinstance(value, np.ndarray))
        )

    def take(self, rows: Ints) -> Emissions:
        chosen = {
            key: value[rows] if isinstance(value, np.ndarray) else value
            for key, value in self._columns().items()
        }
        return type(self)(**chosen)

    def distinct(self) -> Ints | None:
        return _first_alike(
            [
                value.reshape(len(self), -1)
                for value in self._columns().values()
                if isinstance(value, np.ndarray)
            ]
        )

    def _set(self, **values: Any) -> None:
        for key, value in values.items():
            object.__setattr__(self, key, value)


def _first_alike(columns: list[Array]) -> Ints:
    """For each row of a table the first row that equals it."""
    table = np.column_stack(columns)
    by = (
        table[:, 0] if table.shape[1] == 1 else table
    )  # sorting numbers is far cheaper than sorting rows
    _, first, inverse = np.unique(by, axis=0, return_index=True, return_inverse=True)
    return first[inverse].astype(np.int64)


def _column(values: Array, rows: Ints, at: Points) -> Array:
    """Parameters of the chosen rows, shaped to broadcast against the points."""
    return values[rows].reshape((-1,) + (1,) * (at.x.ndim - 1))


def _counts(values: Any, name: str) -> Array:
    counts = as_vector(values, name)
    refuse(
        (counts < 0) | (counts != np.round(counts)),
        name,
        "not whole numbers of at least 0",
        "give counts",
    )
    return counts


def _positive(values: Any, name: str, length: int) -> Array:
    vector = as_vector(values, name, length)
    refuse(vector <= 0, name, "not positive", "give positive numbers")
    return vector


def _refuse_extreme(name: str, values: Array, noise: Array) -> None:
    """Refuse values or noise whose squares cannot be computed with."""
    far = (np.abs(values) > EXTREME) | (noise > EXTREME) | (noise < 1 / EXTREME)
    refuse(far, name, f"too extreme (beyond {EXTREME:g}, or its inverse)", "use another unit")


EXTREME = 1e100


@dataclass(frozen=True, eq=False)
class Bernoulli(ArrayEmissions):
    """Yes/no answers: 1 with probability y."""

    votes: Array
    kind, support, link, discrete = "bernoulli", UNIT, "probit", True

    def __post_init__(self) -> None:
        votes = as_vector(self.votes, "Bernoulli votes")
        refuse(
            (votes != 0) & (votes != 1),
            "Bernoulli votes",
            "neither 0 nor 1",
            "code yes as 1 and no as 0",
        )
        self._set(votes=votes)

    def log_prob(self, at: Points, rows: Ints) -> Array:
        return np.where(_column(self.votes, rows, at) == 1, at.log, at.log_complement)

    def rough(self, link: Link) -> Array:
        return link.latent(0.25 + 0.5 * self.votes)

    def observed(self) -> Array:
        return self.votes


@dataclass(frozen=True, eq=False)
class Binomial(ArrayEmissions):
    """`successes` out of `trials`, each with probability y."""

    successes: Array
    trials: Array
    kind, support, link, discrete = "binomial", UNIT, "probit", True

    def __post_init__(self) -> None:
        successes = _counts(self.successes, "Binomial successes")
        trials = as_vector(self.trials, "Binomial trials", successes.size)
        refuse(
            (trials < 1) | (trials != np.round(trials)),
            "Binomial trials",
            "not whole numbers of at least 1",
            "give counts",
        )
        refuse(
            successes > trials,
            "Binomial successes",
            "larger than their trials",
            "swap or repair them",
        )
        self._set(successes=successes, trials=trials)

    def log_prob(self, at: Points, rows: Ints) -> Array:
        k, n = _column(self.successes, rows, at), _column(self.trials, rows, at)
        choose = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
        with np.errstate(invalid="ignore"):  # 0 · -inf where a side has no votes
            yes = np.where(k > 0, k * at.log, 0.0)
            no = np.where(n - k > 0, (n - k) * at.log_complement, 0.0)
        return choose + yes + no

    def rough(self, link: Link) -> Array:
        return link.latent((self.successes + 0.5) / (self.trials + 1))

    def observed(self) -> Array:
        return self.successes / self.trials


@dataclass(frozen=True, eq=False)
class Poisson(ArrayEmissions):
    """Counts with mean y · exposure."""

    counts: Array
    exposure: Array = 1.0  # type: ignore[assignment]
    kind, support, link, unit_prior, discrete = "poisson", POSITIVE, "log", False, True

    def __post_init__(self) -> None:
        counts = _counts(self.counts, "Poisson counts")
        self._set(counts=counts, exposure=_positive(self.exposure, "Poisson exposure", counts.size))

    def log_prob(self, at: Points, rows: Ints) -> Array:
        k, e = _column(self.counts, rows, at), _column(self.exposure, rows, at)
        with np.errstate(invalid="ignore", over="ignore"):
            return np.where(k > 0, k * (at.log + np.log(e)), 0.0) - e * at.y - gammaln(k + 1)

    def rough(self, link: Link) -> Array:
        return link.latent((self.counts + 0.5) / self.exposure)

    def observed(self) -> Array:
        return self.counts / self.exposure


@dataclass(frozen=True, eq=False)
class NegativeBinomial(ArrayEmissions):
    """Counts with mean μ = y · exposure and variance μ + μ²/size: Poisson in the limit of a large size."""

    counts: Array
    size: Array
    exposure: Array = 1.0  # type: ignore[assignment]
    kind, support, link, unit_prior, discrete = "negative_binomial", POSITIVE, "log", False, True

    def __post_init__(self) -> None:
        counts = _counts(self.counts, "NegativeBinomial counts")
        self._set(
            counts=counts,
            size=_positive(self.size, "NegativeBinomial size", counts.size),
            exposure=_positive(self.exposure, "NegativeBinomial exposure", counts.size),
        )

    def log_prob(self, at: Points, rows: Ints) -> Array:
        k, r, e = (_column(v, rows, at) for v in (self.counts, self.size, self.exposure))
        log_odds = at.log + np.log(e) - np.log(r)  # log μ/r
        # Γ(k + r) / (Γ(r) k!) = 1 / (k B(k, r)): a difference of two log Γ would lose all digits for large sizes
        some = np.maximum(k, 1.0)
        chosen = np.where(k > 0, k * log_odds - np.log(some) - betaln(some, r), 0.0)
        return np.asarray(chosen - (k + r) * np.logaddexp(0.0, log_odds))

    def rough(self, link: Link) -> Array:
        return link.latent((self.counts + 0.5) / self.exposure)

    def observed(self) -> Array:
        return self.counts / self.exposure


@dataclass(frozen=True, eq=False)
class Gaussian(ArrayEmissions):
    """Values with their own standard deviations: exact sites, never tabulated."""

    values: Array
    sd: Array
    kind, unit_prior = "gaussian", False

    def __post_init__(self) -> None:
        values = as_vector(self.values, "Gaussian values")
        self._set(values=values, sd=_positive(self.sd, "Gaussian sd", values.size))
        _refuse_extreme("Gaussian values", values, self.sd)

    def log_prob(self, at: Points, rows: Ints) -> Array:
        sd = _column(self.sd, rows, at)
        return np.asarray(
            -0.5 * ((_column(self.values, rows, at) - at.y) / sd) ** 2
            - np.log(sd * np.sqrt(2 * np.pi))
        )

    def gaussian(self) -> tuple[Array, Array]:
        return self.values, self.sd

    def distinct(self) -> None:
        return None

    def rough(self, link: Link) -> Array:
        return link.latent(_inside(self.values, link))

    def observed(self) -> Array:
        return self.values


@dataclass(frozen=True, eq=False)
class StudentT(ArrayEmissions):
    """Values with heavy-tailed noise: scale and degrees of freedom each."""

    values: Array
    scale: Array
    df: Array = 4.0  # type: ignore[assignment]
    kind, unit_prior = "student_t", False

    def __post_init__(self) -> None:
        values = as_vector(self.values, "StudentT values")
        self._set(
            values=values,
            scale=_positive(self.scale, "StudentT scale", values.size),
            df=_positive(self.df, "StudentT df", values.size),
        )
        _refuse_extreme("StudentT values", values, self.scale)

    def log_prob(self, at: Points, rows: Ints) -> Array:
        m, s, v = (_column(p, rows, at) for p in (self.values, self.scale, self.df))
        constant = gammaln((v + 1) / 2) - gammaln(v / 2) - 0.5 * np.log(v * np.pi) - np.log(s)
        return constant - (v + 1) / 2 * np.log1p(((m - at.y) / s) ** 2 / v)

    def rough(self, link: Link) -> Array:
        return link.latent(_inside(self.values, link))

    def observed(self) -> Array:
        return self.values


@dataclass(frozen=True, eq=False)
class Ordinal(ArrayEmissions):
    """Ordered grades 0…K with cut points: P(grade ≥ k) = σ(y − cut_k). Cuts are shared (K,) or per observation (n, K)."""

    grades: Array
    cuts: Array
    kind, discrete = "ordinal", True

    def __post_init__(self) -> None:
        grades = _counts(self.grades, "Ordinal grades")
        cuts = as_numbers(self.cuts, "Ordinal cuts")
        cuts = np.array(np.broadcast_to(cuts, (grades.size, cuts.size)) if cuts.ndim == 1 else cuts)
        if cuts.ndim != 2 or len(cuts) != grades.size or cuts.shape[1] == 0:
            raise InputError(
                f"Ordinal cuts: shape {cuts.shape} for {grades.size} grades; give (K,) or (n, K)"
            )
        rising = np.asarray(np.isfinite(cuts).all(axis=1) & (np.diff(cuts, axis=1) > 0).all(axis=1))
        refuse(~rising, "Ordinal cuts", "not strictly rising", "sort the cut points")
        refuse(
            grades > cuts.shape[1],
            "Ordinal grades",
            f"above the highest grade {cuts.shape[1]}",
            "add cuts or recode",
        )
        self._set(grades=grades, cuts=cuts)

    def log_prob(self, at: Points, rows: Ints) -> Array:
        cuts = self.cuts[rows].reshape((-1,) + (1,) * (at.x.ndim - 1) + (self.cuts.shape[1],))
        return log_between(at.y[..., None] - cuts, _column(self.grades, rows, at))


KNOWN_ITEMS = {
    "2PL": ("a", "b"),
    "3PL": ("a", "b", "c"),
    "4PL": ("a", "b", "c", "d"),
    "GRM": ("a", "b"),
    "GPCM": ("a", "b"),
}


class ItemResponses(Emissions):
    """Responses to items with known parameters: `ItemResponses(resp, "3PL", a=…, b=…, c=…)`.

    Models: 2PL, 3PL, 4PL, GRM (graded), GPCM (partial credit). Each parameter is one number or one an answer;
    thresholds are (K,) or (n, K). Categories count from 0.
    """

    kind, discrete = "item_responses", True

    def __init__(self, resp: Any, model: str, **params: Any) -> None:
        if model not in KNOWN_ITEMS:
            raise InputError(
                f"ItemResponses: no item model {model!r}; there are {', '.join(KNOWN_ITEMS)}"
            )
        self.name, self.names = model, KNOWN_ITEMS[model]
        self.thresholds = model in ("GRM", "GPCM")
        if set(params) != set(self.names):
            raise InputError(
                f"ItemResponses: a {model} item takes {', '.join(self.names)}; got {', '.join(params) or 'none'}"
            )
        self.resp = _counts(resp, "ItemResponses resp")
        self.params = tuple(self._parameter(name, params[name]) for name in self.names)
        top = self.params[-1].shape[1] if self.thresholds else 1
        refuse(
            self.resp > top,
            "ItemResponses resp",
            f"above the item's highest category {top}",
            "recode from 0",
        )
        self._check_bounds(dict(zip(self.names, self.params, strict=True)))
        self.model = item_model(model, signed=True)
        steps = {f"b{k + 1}": self.params[1][:, k] for k in range(top)} if self.thresholds else {}
        self.u = self.model.recover(
            dict(zip(self.names, self.params, strict=True)) | steps, top + 1
        )

    def _parameter(self, name: str, value: Any) -> Array:
        label, n = f"ItemResponses {name}", len(self)
        if name != "b" or not self.thresholds:
            return as_vector(value, label, n)
        matrix = as_numbers(value, label)
        matrix = np.broadcast_to(matrix, (n, matrix.shape[-1])) if matrix.ndim == 1 else matrix
        if matrix.ndim != 2 or len(matrix) != n:
            raise InputError(f"{label}: shape {matrix.shape} for {n} answers; give (K,) or (n, K)")
        return np.ascontiguousarray(matrix)

    def _check_bounds(self, params: dict[str, Array]) -> None:
        if self.thresholds:
            bad = np.asarray(~np.isfinite(params["b"]).all(axis=1))
            if self.name == "GRM":
                bad |= (np.diff(params["b"], axis=1) <= 0).any(axis=1)
                refuse(
                    params["a"] <= 0,
                    "ItemResponses a",
                    "not positive",
                    "a graded item needs a positive slope",
                )
            refuse(bad, "ItemResponses b", "not finite rising thresholds", "sort the thresholds")
        if "c" in params:
            upper = params.get("d", np.ones(len(self)))
            refuse(
                (params["c"] < 0) | (params["c"] >= upper) | (upper > 1),
                "ItemResponses c (and d)",
                "outside 0 ≤ c < d ≤ 1",
                "give probabilities",
            )

    def __len__(self) -> int:
        return self.resp.size

    def log_prob(self, at: Points, rows: Ints) -> Array:
        theta = np.asarray(at.y).reshape(rows.size, -1)
        every = self.model.rows(self.u[rows], theta)
        return every[np.arange(rows.size), self.resp[rows].astype(np.int64)].reshape(np.shape(at.y))

    def distinct(self) -> Ints:
        return _first_alike([self.resp, *self.params])

    def take(self, rows: Ints) -> "ItemResponses":
        chosen = dict(zip(self.names, (p[rows] for p in self.params), strict=True))
        return ItemResponses(self.resp[rows], self.name, **chosen)


class Functions(Emissions):
    """A user's functions log f_i(y), each vectorised over y."""

    kind = "functions"

    def __init__(self, functions: Sequence[Callable[[Array], Any]]) -> None:
        self.functions = tuple(functions)

    def __len__(self) -> int:
        return len(self.functions)

    def log_prob(self, at: Points, rows: Ints) -> Array:
        out = np.empty_like(at.x)
        for k, row in enumerate(rows):
            out[k] = self._call(int(row), at.y[k])
        return out

    def _call(self, row: int, y: Array) -> Array:
        try:
            values = np.asarray(self.functions[row](y), dtype=np.float64)
        except Exception as error:  # whatever the user's function raised, say which one it was
            raise EmissionError(
                f"emission {row}: its function raised {type(error).__name__}: {error}"
            ) from error
        if values.shape not in ((), y.shape):
            raise EmissionError(
                f"emission {row}: its function returned shape {values.shape} for points of shape {y.shape}; "
                "it must work on arrays"
            )
        return np.broadcast_to(values, y.shape)

    def distinct(self) -> Ints:
        first: dict[int, int] = {}
        return np.array(
            [first.setdefault(id(f), k) for k, f in enumerate(self.functions)], dtype=np.int64
        )

    def take(self, rows: Ints) -> "Functions":
        return Functions([self.functions[row] for row in rows])


class Table(Emissions):
    """log f_i tabulated: `Table(grid, log_lik)`, grid rising on the link's scale (or latent), log_lik one row an emission.

    Between grid points the table is interpolated (cubic spline of log f on the latent scale); beyond them log f goes
    on in a straight line, unless the table says -inf there.
    """

    kind = "table"

    def __init__(self, grid: Any, log_lik: Any, latent: bool = False) -> None:
        self.latent = latent
        self._built: dict[Link, tuple[int, list[Callable[[Array], Array]]]] = {}
        self.grid = as_vector(grid, "Table grid")
        rows = np.atleast_2d(as_numbers(log_lik, "Table log_lik"))
        if self.grid.size < 4 or not np.all(np.diff(self.grid) > 0):
            raise InputError("Table grid: needs at least 4 strictly rising points")
        if rows.ndim != 2 or rows.shape[1] != self.grid.size:
            raise InputError(
                f"Table log_lik: shape {rows.shape} for a grid of {self.grid.size}; give one row an emission"
            )
        refuse(
            np.isnan(rows).any(axis=1) | (rows == np.inf).any(axis=1),
            "Table log_lik (rows)",
            "NaN or +inf somewhere",
            "give log-likelihoods; impossible is -inf",
            EmissionError,
        )
        refuse(
            (rows == -np.inf).all(axis=1),
            "Table log_lik (rows)",
            "-inf everywhere",
            "an observation must be possible somewhere",
            EmissionError,
        )
        self.log_lik = rows

    def __len__(self) -> int:
        return len(self.log_lik)

    def log_prob(self, at: Points, rows: Ints) -> Array:
        sign, splines = self._splines(at.link)
        x = at.x * sign
        return np.stack([splines[row](x[k]) for k, row in enumerate(rows)])

    def _splines(self, link: Link) -> tuple[int, list[Callable[[Array], Array]]]:
        """One interpolating function a row, built once for each link."""
        if (
            link not in self._built
        ):  # by the link itself: every pair of functions is called "custom"
            knots, sign = self._knots(link)
            keep = np.concatenate([[True], np.diff(knots) > 0])
            self._built[link] = sign, [_spline(knots[keep], row[keep]) for row in self.log_lik]
        return self._built[link]

    def distinct(self) -> Ints:
        return np.arange(len(self))

    def _knots(self, link: Link) -> tuple[Array, int]:
        """The grid on the latent scale, rising after multiplication with the sign."""
        if self.latent:
            return self.grid, 1
        inner = self.grid
        if link.range == UNIT:  # the ends 0 and 1 are infinitely far on the latent scale
            inner = np.clip(self.grid, 1e-15, 1 - 1e-15)
        elif link.range == POSITIVE:
            inner = np.maximum(self.grid, 1e-300)
        return link.latent(inner) * link.sign, link.sign

    def latent_ends(self, link: Link) -> tuple[float, float]:
        """The latent values between which the table says something."""
        knots, sign = self._knots(link)
        ends = knots[[0, -1]] * sign
        return float(ends.min()), float(ends.max())

    def take(self, rows: Ints) -> "Table":
        return Table(self.grid, self.log_lik[rows], self.latent)


def _spline(knots: Array, values: Array) -> Callable[[Array], Array]:
    """A cubic through the possible knots and straight lines beyond them; -inf where the table says so.

    A single -inf at the very end of the grid is a limit (log 0 at y = 0), not a region: the line goes on there.
    """
    from scipy.interpolate import make_interp_spline

    possible = np.flatnonzero(np.isfinite(values))
    first, last = int(possible[0]), int(possible[-1])
    if (
        possible.size < 4 or possible.size < last - first + 1
    ):  # gaps within: straight lines, impossible next to impossible
        return partial(_broken_line, knots, values)
    inner = knots[first : last + 1]
    spline = make_interp_spline(inner, values[first : last + 1], k=3)
    low = -np.inf if first <= 1 else knots[first - 1]
    high = np.inf if last >= knots.size - 2 else knots[last + 1]

    def log_lik(x: Array) -> Array:
        inside = np.clip(x, inner[0], inner[-1])
        line = spline(inside) + (x - inside) * spline(inside, nu=1)
        return np.where((x <= low) | (x >= high), -np.inf, line)

    return log_lik


def _broken_line(knots: Array, values: Array, x: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(np.interp(x, knots, values), nan=-np.inf, neginf=-np.inf)


class Mixed(Emissions):
    """Several kinds laid end to end."""

    kind = "mixed"

    def __init__(self, parts: Sequence[Emissions]) -> None:
        self.parts = tuple(parts)
        self.starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(
            np.int64
        )

    def __len__(self) -> int:
        return int(self.starts[-1])

    def _split(self, rows: Ints) -> Iterator[tuple[Emissions, Ints, Ints]]:
        """Each part with the rows that fall into it, counted within the part, and where they stand in `rows`."""
        owner = np.searchsorted(self.starts, rows, side="right") - 1
        for k, part in enumerate(self.parts):
            where = np.flatnonzero(owner == k)
            if where.size:
                yield part, rows[where] - self.starts[k], where

    def log_prob(self, at: Points, rows: Ints) -> Array:
        out = np.empty_like(at.x)
        for part, inner, where in self._split(rows):
            out[where] = part.log_prob(Points(at.x[where], at.link), inner)
        return out

    def distinct(self) -> Ints | None:
        firsts = [part.distinct() for part in self.parts]
        if any(first is None for first in firsts):
            return None
        return np.concatenate(
            [
                first + start
                for first, start in zip(firsts, self.starts, strict=False)
                if first is not None
            ]
        )

    def take(self, rows: Ints) -> Emissions:
        return Mixed(
            [part.take(inner) for part, inner, _ in self._split(np.sort(rows))]
        )  # kinds stay end to end

    def observed(self) -> Array | None:
        seen = [part.observed() for part in self.parts]
        return (
            None
            if any(s is None for s in seen)
            else np.concatenate([s for s in seen if s is not None])
        )


FAMILIES: dict[str, type[Any]] = {
    cls.kind: cls
    for cls in (
        Bernoulli,
        Binomial,
        Poisson,
        NegativeBinomial,
        Gaussian,
        StudentT,
        Ordinal,
        ItemResponses,
        Table,
    )
}


def as_emissions(given: Any) -> Emissions:
    """Emissions from a family, a function, or a list of either (laid end to end)."""
    if isinstance(given, Emissions):
        return given
    if isinstance(given, type):
        raise InputError(
            f"emissions: {given.__name__} is a class; give it the observations: {given.__name__}(…)"
        )
    if callable(given):
        return Functions([given])
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise InputError(
            f"emissions: expected a family such as Bernoulli(votes), or a list of functions; got {type(given).__name__}"
        )
    parts: list[Emissions] = []
    run: list[Callable[[Array], Any]] = []
    for k, part in enumerate(given):
        if callable(part) and not isinstance(part, Emissions):
            run.append(part)
            continue
        if not isinstance(part, Emissions):
            raise InputError(
                f"emissions: entry {k} is {type(part).__name__}, neither a family nor a function"
            )
        if run:
            parts.append(Functions(run))
            run = []
        parts.extend(part.parts if isinstance(part, Mixed) else [part])
    if run:
        parts.append(Functions(run))
    return parts[0] if len(parts) == 1 else Mixed(parts)


def parts_of(emissions: Emissions) -> tuple[tuple[Emissions, slice], ...]:
    """The kinds within, each with the observations it covers."""
    if not isinstance(emissions, Mixed):
        return ((emissions, slice(0, len(emissions))),)
    return tuple(
        (part, slice(int(a), int(b)))
        for part, a, b in zip(
            emissions.parts, emissions.starts[:-1], emissions.starts[1:], strict=True
        )
    )


def check_evidence(emissions: Emissions, log_evidence: Array) -> None:
    """Refuse a log probability above 0 of what has probabilities: the numbers have failed, and nothing that follows can be right."""
    slack = EVIDENCE_SLACK * (1 + len(emissions))
    if (
        all(part.discrete for part, _ in parts_of(emissions))
        and np.max(log_evidence, initial=-np.inf) > slack
    ):
        raise EmissionError(
            f"the log probability of these {len(emissions)} observations came out as {np.max(log_evidence):+.3g}, which is "
            "impossible: the prior and the observations contradict each other beyond what can be computed; bring mean, "
            "amplitude and observations to one scale"
        )


EVIDENCE_SLACK = 1e-3  # nats an observation that grafting may be off by


def _inside(values: Array, link: Link) -> Array:
    """Values moved into the link's range, for a rough start only."""
    if link.range == UNIT:
        return np.clip(values, 0.01, 0.99)
    return (
        np.maximum(values, 1e-3 * max(1e-300, float(np.abs(values).max())))
        if link.range == POSITIVE
        else values
    )
