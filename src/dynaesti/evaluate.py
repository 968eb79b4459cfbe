"""How good predictions are: proper scores, calibration, fit of items and persons, comparisons; on held-out answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.stats import rankdata

from dynaesti.arrays import Array, Bools, Ints, as_vector, generator, whole_number
from dynaesti.baselines import constant, elo, item_and_person
from dynaesti.dynaesti import DynAEsti
from dynaesti.errors import InputError
from dynaesti.figures import calibration_table
from dynaesti.findings import Twin
from dynaesti.frames import make_frame
from dynaesti.items import OwnModel
from dynaesti.responses import Responses
from dynaesti.results import Fit

EDGE = 1e-12
MOST_FOLDS = 50
MOST_VALUES = 30  # distinct responses up to which simple forecasts have categories


@dataclass(frozen=True)
class Scores:
    """Scores of predicted chances. Lower is better for log loss and Brier, higher for AUC; IMV is against the base rate."""

    n: int
    log_loss: float
    brier: float
    auc: float  # NaN when not binary
    imv: float  # NaN when not binary

    def __str__(self) -> str:
        return f"n {self.n:,}, log loss {self.log_loss:.4f}, Brier {self.brier:.4f}, AUC {self.auc:.4f}, IMV {self.imv:.4f}"


def binary_scores(p: Any, y: Any, baseline: Any = None) -> Scores:
    """Scores of chances p of y = 1. `baseline` (default: the mean of y) is what the InterModel Vigorish is counted against."""
    chance, seen = np.clip(as_vector(p, "p"), EDGE, 1 - EDGE), as_vector(y, "y")
    if not seen.size:
        raise InputError("scores: no answers to score")
    if chance.size != seen.size or not np.isin(seen, (0, 1)).all():
        raise InputError("scores: p and y must be of one length, y of 0 and 1")
    base = (
        np.full(seen.size, seen.mean())
        if baseline is None
        else np.clip(as_vector(baseline, "baseline", seen.size), EDGE, 1 - EDGE)
    )
    return Scores(
        seen.size,
        float(-_log_chance(chance, seen).mean()),
        float(((chance - seen) ** 2).mean()),
        auc(chance, seen),
        imv(base, chance, seen),
    )


def _log_chance(p: Array, y: Array) -> Array:
    return np.where(y == 1, np.log(np.maximum(p, EDGE)), np.log(np.maximum(1 - p, EDGE)))


def auc(p: Array, y: Array) -> float:
    """Chance that a success was given a higher probability than a failure."""
    good = int(y.sum())
    if good in (0, y.size):
        return float("nan")
    return float((rankdata(p)[y == 1].sum() - good * (good + 1) / 2) / (good * (y.size - good)))


def imv(base: Array, p: Array, y: Array) -> float:
    """InterModel Vigorish: the gain of p over a baseline in terms of a weighted coin (Domingue et al. 2021)."""
    coins = [_coin(float(_log_chance(q, y).mean())) for q in (base, p)]
    return (coins[1] - coins[0]) / coins[0]


def _coin(mean_log: float) -> float:
    """W ≥ ½ with w log w + (1 − w) log(1 − w) = the mean log-likelihood."""
    if mean_log <= np.log(0.5):
        return 0.5
    if mean_log >= -1e-12:
        return 1.0
    return float(
        brentq(lambda w: w * np.log(w) + (1 - w) * np.log1p(-w) - mean_log, 0.5, 1 - 1e-15)
    )


def held_out(fit: Fit, data: Any) -> Scores:
    """Scores of a fit's predictions of answers it has not seen; for several categories log loss and a multi-category Brier score."""
    more, people, items = fit._read(data)
    return scores_of(fit, more, people, items)


def scores_of(fit: Fit, more: Responses, people: Ints, items: Ints) -> Scores:
    """The same for responses already read."""
    found = fit.predictions(more, people, items)
    if (
        found.chances.shape[1] == 2
        and np.isfinite(found.chances).all()
        and np.isin(more.resp, (0, 1)).all()
    ):
        return binary_scores(found.chances[:, 1], more.resp)
    loss = -np.log(np.maximum(found.given, EDGE))
    chances = np.nan_to_num(found.chances)
    brier = float("nan")
    if chances.shape[1] and np.isfinite(found.chances[:, 0]).all():
        brier = float(((chances**2).sum(axis=1) - 2 * found.given + 1).mean())
    return Scores(len(more), float(loss.mean()), brier, float("nan"), float("nan"))


def calibration(fit: Fit, data: Any, bins: int = 10) -> Any:
    """Predicted against observed mean responses in bins of equal size, with a standard error: a frame."""
    more, people, items = fit._read(data)
    found = fit.predictions(more, people, items)
    return calibration_table(found.expected, found.variance, more.resp, bins, fit.frame)


def split(
    data: Any, share: float = 0.2, *, by: str = "random", seed: int = 0, **columns: Any
) -> tuple[Responses, Responses]:
    """(training, held-out) answers: a random share of the cells; `by="last"`: each person's last ones; `"people"`: all of some people."""
    responses = Responses.read(data, **columns)
    if not 0 < share < 1:
        raise InputError(f"share: {share!r} is not between 0 and 1")
    if by not in SPLITS:
        raise InputError(f"by: {by!r} is none of {', '.join(map(repr, SPLITS))}")
    out = SPLITS[by](responses, share, generator(seed))
    if out.all() or not out.any():
        raise InputError(
            f"share: {share!r} of these answers leaves nothing to {'fit' if out.all() else 'hold out'}"
        )
    return responses.part(np.flatnonzero(~out)), responses.part(np.flatnonzero(out))


def _random_cells(r: Responses, share: float, rng: np.random.Generator) -> Bools:
    return rng.uniform(size=len(r)) < share


def _last_answers(r: Responses, share: float, rng: np.random.Generator) -> Bools:  # noqa: ARG001
    sizes = np.diff(r.person_start)
    place = np.arange(len(r)) - np.repeat(r.person_start[:-1], sizes)
    return np.asarray(place >= np.ceil((1 - share) * np.repeat(sizes, sizes)))


def _some_people(r: Responses, share: float, rng: np.random.Generator) -> Bools:
    return np.asarray((rng.uniform(size=r.people.size) < share)[r.person])


SPLITS = {"random": _random_cells, "last": _last_answers, "people": _some_people}


def rolling(data: Any, folds: int = 3, **columns: Any) -> list[tuple[Responses, Responses]]:
    """(training, held-out) pairs with the origin rolling on: all answers before a time, then those up to the next one.

    The second half of the answers is cut into `folds` stretches of time with equally many.
    """
    responses = Responses.read(data, **columns)
    if whole_number(folds, "folds", 1) > MOST_FOLDS:
        raise InputError(f"folds: {folds} fits are too many; give at most {MOST_FOLDS}")
    cuts = np.quantile(responses.offsets, np.linspace(0.5, 1.0, folds + 1))
    cuts[-1] = np.inf
    pairs = []
    for low, high in pairwise(cuts):
        before, after = (
            responses.offsets < low,
            (responses.offsets >= low) & (responses.offsets < high),
        )
        if before.any() and after.any():
            pairs.append(
                (responses.part(np.flatnonzero(before)), responses.part(np.flatnonzero(after)))
            )
    if not pairs:
        raise InputError(
            "folds: the answers share too few times to be cut into earlier and later ones"
        )
    return pairs


def against_baselines(
    estimator: DynAEsti, pairs: Sequence[tuple[Responses, Responses]], *, static: bool = True
) -> Any:
    """Held-out scores of a model beside simpler forecasts, pooled over (training, held-out) pairs: a frame.

    Rows: constant, item + person, Elo (0/1 only), static IRT, dynamic IRT. `se` is the standard error of the log loss over people.
    Answers to items that the training part lacks are left out, and counted in `skipped`.
    """
    rows: dict[str, list[Forecast]] = {}
    skipped = 0
    for train, test in pairs:
        known = np.isin(test.items.astype(object), train.items.astype(object))[test.item]
        skipped += int((~known).sum())
        if not known.any():
            continue
        for name, forecast in _forecasts(
            estimator, train, test.part(np.flatnonzero(known)), static
        ):
            rows.setdefault(name, []).append(forecast)
    if not rows:
        raise InputError("no held-out answer is to an item that the training part has")
    table = {name: pooled(parts) for name, parts in rows.items()}
    return make_frame(
        {
            "forecast": list(table),
            "log_loss": [s.log_loss for s, _ in table.values()],
            "se": [se for _, se in table.values()],
            "brier": [s.brier for s, _ in table.values()],
            "auc": [s.auc for s, _ in table.values()],
            "imv": [s.imv for s, _ in table.values()],
            "n": [s.n for s, _ in table.values()],
            "skipped": [skipped] * len(table),
        },
        pairs[0][0].frame,
    )


@dataclass(frozen=True)
class Forecast:
    """Chances of held-out answers: of what was answered, of each category (none for amounts), and whose they are."""

    given: Array
    chances: Array
    resp: Array
    person: npt.NDArray[Any]

    @property
    def binary(self) -> bool:
        """Whether the answers are 0 and 1."""
        return self.chances.shape[1] == 2 and bool(np.isin(self.resp, (0, 1)).all())


def pooled(parts: Sequence[Forecast]) -> tuple[Scores, float]:
    """Scores over several parts, and the standard error of the log loss with answers of one person taken as one draw."""
    given, resp = np.concatenate([p.given for p in parts]), np.concatenate([p.resp for p in parts])
    loss = -np.log(np.maximum(given, EDGE))
    person = np.unique(np.concatenate([p.person.astype(str) for p in parts]), return_inverse=True)[
        1
    ]
    se = person_error(loss, person)
    if all(p.binary for p in parts):
        return binary_scores(np.concatenate([p.chances[:, 1] for p in parts]), resp), se
    brier = float(
        np.concatenate(
            [(np.nan_to_num(p.chances) ** 2).sum(axis=1) - 2 * p.given + 1 for p in parts]
        ).mean()
    )
    whole = all(p.chances.shape[1] for p in parts)
    return Scores(
        loss.size, float(loss.mean()), brier if whole else float("nan"), float("nan"), float("nan")
    ), se


def person_error(values: Array, person: Ints) -> float:
    """Standard error of a mean over answers, those of one person taken as one draw; NaN for a single person."""
    sums = np.bincount(person, values - values.mean())
    people = np.unique(person).size
    return (
        float(np.sqrt((sums**2).sum() * people / max(people - 1, 1)) / values.size)
        if people > 1
        else float("nan")
    )


def _forecasts(
    estimator: DynAEsti, train: Responses, test: Responses, static: bool
) -> Iterator[tuple[str, Forecast]]:
    people = test.people[test.person]
    values = np.unique(np.concatenate([train.resp, test.resp]))
    code = np.searchsorted(values, test.resp)
    fits = (
        []
        if not static or estimator.kernel.static
        else [("static IRT", estimator.with_options(bandwidth=np.inf))]
    )
    fits.append(("static IRT" if estimator.kernel.static else "dynamic IRT", estimator))
    if values.size <= MOST_VALUES:
        simple = {
            "constant": constant(train, test, values),
            "item + person": item_and_person(train, test, values),
        }
        if np.isin(values, (0, 1)).all():
            chance = elo(train, test)
            simple["Elo"] = np.stack([1 - chance, chance], axis=1)
        for name, chances in simple.items():
            yield name, Forecast(chances[np.arange(len(test)), code], chances, test.resp, people)
    for name, chosen in fits:
        fit = chosen.fit(train)
        found = fit.predictions(*fit._read(test))
        yield name, Forecast(found.given, found.chances, test.resp, people)


def item_fit(fit: Fit, by: str | None = None, bins: int = 5) -> Any:
    """Infit and outfit mean squares of each item: about 1 where the model holds. `by`: "ability" or "time" splits the residuals.

    Each answer is predicted without itself (its cavity), so sparse data do not look better than they are.
    """
    r = fit.responses
    z = _standardised(fit)
    labels = r.items.tolist()
    if by is None:
        outfit, infit = _mean_squares(r.item, r.items.size, z)
        return make_frame(
            {
                "item": labels,
                "infit": infit,
                "outfit": outfit,
                "n": np.bincount(r.item, minlength=r.items.size),
            },
            fit.frame,
        )
    if by not in ("ability", "time"):
        raise InputError(f"by: {by!r} is neither 'ability' nor 'time'")
    value = r.clock_times if by == "time" else z.ability
    edges = np.unique(
        np.quantile(value, np.linspace(0, 1, whole_number(bins, "bins", 1) + 1)[1:-1])
    )
    used, bin_of = np.unique(
        np.searchsorted(edges, value), return_inverse=True
    )  # tied values leave bins empty
    bins = used.size
    cell = r.item * bins + bin_of
    n = np.bincount(cell, minlength=r.items.size * bins)
    raw = np.bincount(cell, z.residual, r.items.size * bins)
    var = np.bincount(cell, z.variance, r.items.size * bins)
    middle = [float(np.median(value[bin_of == b])) for b in range(bins)]
    keep = n > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        return make_frame(
            {
                "item": [labels[k // bins] for k in np.flatnonzero(keep)],
                by: np.tile(middle, r.items.size)[keep],
                "residual": (raw / n)[keep],
                "z": (raw / np.sqrt(var))[keep],
                "n": n[keep],
            },
            fit.frame,
        )


def person_fit(fit: Fit) -> Any:
    """Infit and outfit of each person: large values mean answers that do not fit their curve."""
    r = fit.responses
    outfit, infit = _mean_squares(r.person, r.people.size, _standardised(fit))
    return make_frame(
        {
            "id": r.people.tolist(),
            "infit": infit,
            "outfit": outfit,
            "n": np.bincount(r.person, minlength=r.people.size),
        },
        fit.frame,
    )


@dataclass(frozen=True)
class Residuals:
    """Each answer against its prediction without itself."""

    residual: Array
    variance: Array
    ability: Array


def _standardised(fit: Fit) -> Residuals:
    r = fit.responses
    found, ability = fit.without_each()
    return Residuals(r.resp - found.expected, np.maximum(found.variance, EDGE), ability)


def _mean_squares(group: Ints, size: int, z: Residuals) -> tuple[Array, Array]:
    n = np.maximum(np.bincount(group, minlength=size), 1)
    outfit = np.bincount(group, z.residual**2 / z.variance, size) / n
    infit = np.bincount(group, z.residual**2, size) / np.maximum(
        np.bincount(group, z.variance, size), EDGE
    )
    return outfit, infit


def compare(first: Fit, second: Fit, data: Any = None) -> Any:
    """Two fits side by side: evidence, number of parameters, and scores on held-out answers where given: a frame."""
    rows = []
    for fit in (first, second):
        scores = None if data is None else held_out(fit, data)
        free = sum(int(block.free.sum()) for block in fit.bank.blocks)
        rows.append(
            {
                "log_evidence": fit.log_evidence,
                "parameters": free,
                "log_loss": scores.log_loss if scores else np.nan,
                "brier": scores.brier if scores else np.nan,
                "auc": scores.auc if scores else np.nan,
            }
        )
    return make_frame(
        {"fit": ["first", "second"], **{key: [row[key] for row in rows] for key in rows[0]}},
        first.frame,
    )


def static_twin(estimator: DynAEsti, fit: Fit) -> Twin:
    """The same answers with constant abilities, items begun from the fit's: each answer predicted without itself under both."""
    still = estimator.with_options(
        bandwidth=np.inf,
        checkpoint=None,
        progress=False,
        standard_errors=False,
        start=starting_items(fit),
    )
    return twin_of(fit, still.fit(fit.responses))


def twin_of(fit: Fit, static: Fit) -> Twin:
    """Two fits of the same answers, of which the second has constant abilities, held against each other."""
    if len(fit.responses) != len(static.responses):
        raise InputError(
            f"the fits are of different answers: {len(fit.responses):,} and {len(static.responses):,}"
        )
    losses = [-np.log(np.maximum(one.without_each()[0].given, EDGE)) for one in (fit, static)]
    apart = losses[1] - losses[0]
    people = int(fit.responses.people.size)
    return Twin(
        static,
        float(losses[0].mean()),
        float(losses[1].mean()),
        person_error(apart, fit.responses.person),
        people,
    )


def starting_items(fit: Fit) -> dict[Any, dict[str, float]]:
    """A fit's items for the next one to begin from; where a slope or steps are not an item's own, or the model is the user's, none."""
    table = nw.from_native(fit.items, eager_only=True)
    rows = dict(zip(fit.responses.items.tolist(), table.iter_rows(named=True), strict=True))
    out: dict[Any, dict[str, float]] = {}
    for block in fit.bank.blocks:
        if block.model.fixes_slope or block.model.shared or isinstance(block.model, OwnModel):
            continue
        names = list(block.model.describe(block.u[:1]))
        if any(name.startswith("b") for name in names):  # intercepts say the same in another metric
            names = [name for name in names if not name.startswith("intercept")]
        for label in fit.responses.items[block.items].tolist():
            out[label] = {
                name: rows[label][name] for name in names if np.isfinite(rows[label][name])
            }
    return out


def dynamic_against_static(
    estimator: DynAEsti,
    data: Any,
    *,
    share: float = 0.2,
    by: str = "random",
    seed: int = 0,
    **columns: Any,
) -> Any:
    """Fit with moving and with constant abilities on the same part of the data, and score both on the rest: a frame."""
    train, test = split(data, share, by=by, seed=seed, **columns)
    still = estimator.with_options(bandwidth=np.inf)
    rows = {}
    for name, chosen in (("dynamic", estimator), ("static", still)):
        fit = chosen.fit(train)
        seen = np.isin(test.items, train.items)
        rows[name] = (fit.log_evidence, held_out(fit, test.part(np.flatnonzero(seen[test.item]))))
    return make_frame(
        {
            "abilities": list(rows),
            "log_evidence": [e for e, _ in rows.values()],
            "log_loss": [s.log_loss for _, s in rows.values()],
            "brier": [s.brier for _, s in rows.values()],
            "auc": [s.auc for _, s in rows.values()],
            "imv": [s.imv for _, s in rows.values()],
        },
        train.frame,
    )
