"""Small fits of every kind, and all the arrays they leave.

Run by `compare.py` once for each of two source trees.

Only public names are used, and for renamed ones the older name is tried too, so that the same file
runs on both sides.
"""

import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

import dynaesti as dy

Arrays = dict[str, Any]
CASES: dict[str, Callable[[], Arrays]] = {}

# commits before the cohort do not know the option
NO_COHORT = {"cohort": None} if "cohort" in signature(dy.DynAEsti).parameters else {}


def case(function: Callable[[], Arrays]) -> Callable[[], Arrays]:
    """Put a case on the list."""
    CASES[function.__name__] = function
    return function


def public(*names: str) -> Any:
    """The first of these names that the package has: the present one, then earlier ones."""
    return next(getattr(dy, name) for name in names if name in dy.__all__)


def method(owner: Any, *names: str) -> Any:
    """The same for a method or property."""
    return next(getattr(owner, name) for name in names if hasattr(owner, name))


# data
# --------------------------------------------------------------------------------------------------


def table(
    people: int = 24,
    items: int = 8,
    each: int = 18,
    top: int = 1,
    seed: int = 0,
    instants: int | None = None,
) -> dict[str, Any]:
    """Answers 0 … top of people whose abilities wander.

    With `instants`, several answers share a time.
    """
    rng = np.random.default_rng(seed)
    n = people * each
    person = np.repeat(np.arange(people), each)
    item = rng.integers(items, size=n)
    time = (
        np.round(rng.uniform(0, 100, n), 2)
        if instants is None
        else rng.integers(instants, size=n) * (100.0 / instants)
    )
    phase = rng.uniform(0, 6, people)
    theta = rng.normal(size=people)[person] * 0.8 + 0.8 * np.sin(time / 25 + phase[person])
    noise = rng.logistic(size=n)
    cuts = np.linspace(-1, 1, items)[item][:, None] + np.linspace(-1.5, 1.5, top)[None, :] * (
        top > 1
    )
    resp = (theta + noise)[:, None] > cuts
    return {
        "id": [f"p{k:02d}" for k in person],
        "item": [f"q{k}" for k in item],
        "resp": resp.sum(axis=1),
        "date": time,
    }


def amounts(kind: str, seed: int = 1) -> dict[str, Any]:
    """Counts, measurements or shares in place of categories."""
    rng = np.random.default_rng(seed)
    data = table(seed=seed)
    signal = 0.4 * np.asarray(data["resp"]) + rng.normal(size=len(data["id"])) * 0.2
    if kind == "poisson":
        data["resp"] = rng.poisson(np.exp(signal))
    elif kind == "gaussian":
        data["resp"] = 10.0 + 3.0 * signal
    else:
        data["resp"] = np.clip(1 / (1 + np.exp(-signal)), 0.01, 0.99)
    return data


def votes(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Days and votes whose share moves."""
    rng = np.random.default_rng(seed)
    days = np.sort(rng.uniform(0, 100, n))
    return days, (rng.random(n) < 0.5 + 0.35 * np.sin(days / 15)).astype(int)


# what is read off
# --------------------------------------------------------------------------------------------------


def columns(frame: Any, leave: tuple[str, ...] = ()) -> Arrays:
    """A frame as a mapping of arrays."""
    names = list(frame) if isinstance(frame, dict) else list(frame.columns)
    return {str(name): np.asarray(frame[name]) for name in names if name not in leave}


def of_curve(curve: Any) -> Arrays:
    """Everything numerical of a curve."""
    at = np.linspace(-10, 120, 9)
    weights, _, parts = curve.weighted_components()
    out = {
        "mean": curve.mean(at),
        "sd": curve.sd(at),
        "interval": np.array(curve.interval(at, 0.7)),
        "evidence": curve.log_evidence,
        "covariance": curve.covariance(at),
        "sample": curve.sample(at, 3, seed=1),
        "weights": weights,
        "loo": curve.loo,
        "slope": np.asarray(curve.derivative(at).mean),
    }
    for k, part in enumerate(parts):
        sites = part.ep.sites if hasattr(part, "ep") else part
        out[f"precision{k}"], out[f"shift{k}"] = sites.precision, sites.shift
    return out


def of_fit(fit: Any) -> Arrays:
    """Everything numerical of a fit of abilities."""
    out = {f"items.{k}": v for k, v in columns(fit.items).items()}
    out |= {f"ability.{k}": v for k, v in columns(fit.ability(at=[10.0, 55.0, 130.0])).items()}
    out |= {
        f"history.{k}": v
        for k, v in columns(
            fit.history, ("seconds", "rows_per_second", "responses_per_second", "stage")
        ).items()
    }
    return out | {"evidence": fit.log_evidence, "population": columns(fit.bandwidths)["weight"]}


def fitted(model: Any = "2PL", data: dict[str, Any] | None = None, **options: Any) -> Any:
    """A fit with few iterations."""
    return dy.DynAEsti(model, **NO_COHORT, iterations=options.pop("iterations", 12), **options).fit(
        data or table()
    )


# curves
# --------------------------------------------------------------------------------------------------


@case
def curve_votes() -> Arrays:
    days, seen = votes(60, 0)
    curve = dy.CurvFiFE().fit(days, dy.Bernoulli(seen))
    more = curve.update([101.0, 103.0], dy.Bernoulli([1, 0]))
    return of_curve(curve) | {f"more.{k}": v for k, v in of_curve(more).items()}


@case
def curve_solvers() -> Arrays:
    days, seen = votes(50, 1)
    out = {}
    for solver, kernel in (
        ("dense", dy.Level() + dy.Matern32(20.0)),
        ("lowrank", dy.RBF(20.0)),
        ("statespace", dy.Level() + dy.Matern32(20.0)),
    ):
        curve = dy.CurvFiFE(kernel, solver=solver, refine=False).fit(
            np.round(days / 4) * 4, dy.Binomial(seen, np.ones(50))
        )
        out |= {f"{solver}.{k}": v for k, v in of_curve(curve).items()}
    return out


@case
def curve_families() -> Arrays:
    rng = np.random.default_rng(3)
    days = np.sort(rng.uniform(0, 60, 40))
    counts = rng.poisson(np.exp(1 + np.sin(days / 9)))
    families = {
        "counts": dy.Poisson(counts),
        "negative": dy.NegativeBinomial(counts, 3.0),
        "gauss": dy.Gaussian(np.sin(days / 9), 0.2),
        "student": dy.StudentT(np.sin(days / 9), 0.2, 4.0),
        "ordinal": dy.Ordinal(counts.clip(0, 2), [-0.5, 0.8]),
    }
    out = {}
    for name, family in families.items():
        out |= {
            f"{name}.{k}": v
            for k, v in of_curve(dy.CurvFiFE().fit(days, family)).items()
            if k != "sample"
        }
    return out


@case
def curve_audited() -> Arrays:
    days, seen = votes(40, 4)
    hard = dy.ItemResponses(seen, "3PL", a=4.0, b=0.5, c=0.33)
    curve = dy.CurvFiFE(dy.RBF(15.0), refine=False).fit(days, hard)
    audit = curve.audit(seed=1)
    at = np.linspace(0, 100, 7)
    return of_curve(curve) | {
        "audit.mean": audit.mean(at),
        "audit.sd": audit.sd(at),
        "audit.ess": audit.ess,
        "audit.k": audit.pareto_k,
    }


@case
def curves_many() -> Arrays:
    rng = np.random.default_rng(5)
    days = np.tile(np.linspace(0, 50, 15), 12)
    label = np.repeat([f"g{k}" for k in range(12)], 15)
    seen = (rng.random(days.size) < 0.5 + 0.3 * np.sin(days / 8)).astype(int)
    out = {}
    for name, kernel in {"rbf": dy.RBF(), "matern": dy.Level() + dy.Matern32(9.0)}.items():
        many = dy.CurvFiFE(kernel).fit_many(label, days, dy.Bernoulli(seen))
        out |= {
            f"{name}.{k}": v for k, v in columns(many.to_frame(np.linspace(-5, 60, 6))).items()
        } | {f"{name}.e": many.log_evidence}
    return out


# abilities
# --------------------------------------------------------------------------------------------------


@case
def ability_default() -> Arrays:
    data = table(people=40)
    fit = fitted("2PL", data, iterations=40)
    new = {
        "id": ["p00", "p00", "nobody"],
        "item": ["q1", "q2", "q3"],
        "resp": [1, 0, 1],
        "date": [101.0, 105.0, 50.0],
    }
    known = {k: v[:2] for k, v in new.items()}
    out = of_fit(fit) | {f"predict.{k}": v for k, v in columns(fit.predict(new)).items()}
    out |= {
        f"score.{k}": v
        for k, v in columns(fit.score({**data, "id": ["x" + i for i in data["id"]]})).items()
    }
    out |= {f"update.{k}": v for k, v in of_fit(fit.update(known)).items()}
    live = fit.live("p00")
    live = live.add(101.0, "q1", 1).add(105.0, "q2", 0)
    out |= {f"live.{k}": v for k, v in columns(live.ability([20.0, 110.0])).items()}
    change = fit.change("p01", 10, 90)
    out |= {
        "change": np.array([change.mean, change.sd, change.rose]),
        "plausible": fit.plausible("p02", [50.0, 60.0], 3, 2),
    }
    uncertain = method(fit, "ability_with_item_uncertainty", "uncertain")
    return out | {
        f"uncertain.{k}": v for k, v in columns(uncertain("p03", [20.0, 70.0], draws=3)).items()
    }


@case
def ability_models() -> Arrays:
    out = {}
    for model, top in (
        ("1PL", 1),
        ("3PL", 1),
        ("4PL", 1),
        ("GRM", 3),
        ("PCM", 3),
        ("GPCM", 3),
        ("RSM", 3),
        ("NRM", 3),
        ("golf", 4),
    ):
        out |= {f"{model}.{k}": v for k, v in of_fit(fitted(model, table(top=top))).items()}
    for model in ("poisson", "gaussian", "beta"):
        out |= {f"{model}.{k}": v for k, v in of_fit(fitted(model, amounts(model))).items()}
    return out


@case
def ability_kernels() -> Arrays:
    out = {}
    for name, kernel in {
        "rbf": "rbf",
        "m52": dy.Level(amplitude="learn") + dy.Matern52(amplitude="learn"),
        "wiener": dy.Wiener(),
        "trend": dy.Level() + dy.Trend(0.3) + dy.RBF(30.0),
        "m12": dy.Matern12(40.0),
    }.items():
        try:
            fit = fitted("2PL", table(instants=9), kernel=kernel)
        except dy.InputError as error:
            print(name, error, file=sys.stderr)
            continue
        out |= {f"{name}.{k}": v for k, v in of_fit(fit).items()}
    return out


@case
def ability_static() -> Arrays:
    fit = fitted("2PL", bandwidth=np.inf)
    mixed = fitted({f"q{k}": "2PL" if k < 4 else "GRM" for k in range(8)}, bandwidth=np.inf)
    return {f"a.{k}": v for k, v in of_fit(fit).items()} | {
        f"b.{k}": v for k, v in of_fit(mixed).items()
    }


@case
def ability_options() -> Arrays:
    data = table(people=50, items=30, each=12)
    out = {
        f"free.{k}": v
        for k, v in of_fit(fitted("2PL", data, direction="free", priors="hierarchical")).items()
    }
    anchors = {"q1": {"a": 1.0, "b": -0.5}, "q2": {"a": 1.2, "b": 0.0}, "q3": {"a": 0.8, "b": 0.6}}
    out |= {f"fixed.{k}": v for k, v in of_fit(fitted("2PL", data, fixed=anchors)).items()}
    out |= {
        f"scale.{k}": v
        for k, v in of_fit(fitted("2PL", data, scale="items", clock="person")).items()
    }
    out |= {
        f"bare.{k}": v for k, v in of_fit(fitted("2PL", data, priors=None, iterations=6)).items()
    }
    return out


@case
def ability_own_model() -> Arrays:
    def log_prob(theta: Any, y: Any, item: Any) -> Any:
        a, b = item
        u = a * (theta - b) * (2 * y - 1)
        return -np.logaddexp(0.0, -u)

    own = public("CustomItemModel", "OwnModel")
    model = own(log_prob, {"a": (1.0, 0.05, 10.0), "b": (0.0, -6.0, 6.0)})
    return of_fit(fitted(model))


@case
def ability_shards() -> Arrays:
    pa = __import__("pyarrow")
    parquet = __import__("pyarrow.parquet").parquet
    data = table(people=60)
    out = {}
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        parquet.write_table(
            pa.table({**data, "resp": np.asarray(data["resp"])}), where / "answers.parquet"
        )
        shards = dy.prepare(where / "answers.parquet", where / "shards", shards=4)
        fit = dy.DynAEsti("2PL", **NO_COHORT, iterations=20).fit(shards, out=where / "run")
        out |= {f"items.{k}": v for k, v in columns(fit.items).items()} | {
            "evidence": fit.log_evidence
        }
        out |= {f"ability.{k}": v for k, v in columns(fit.ability([10.0, 90.0])).items()}
        new = {"id": ["p00", "p07"], "item": ["q1", "q2"], "resp": [1, 0], "date": [101.0, 105.0]}
        fit = fit.update(new)
        out |= {f"update.{k}": v for k, v in columns(fit.ability([10.0, 103.0])).items()}
        fit = public("refit_items", "refresh")(fit, iterations=4)
        out |= {f"again.{k}": v for k, v in columns(fit.items).items()}
    return out


@case
def ability_new_items() -> Arrays:
    data = table(people=40)
    fit = fitted("2PL", data)
    new = {
        "id": ["p00", "p01", "p02", "p03"] * 3,
        "item": ["z1"] * 6 + ["z2"] * 6,
        "resp": [0, 1, 1, 0, 1, 1] * 2,
        "date": list(np.linspace(101, 104, 12)),
    }
    more = fit.update(new, new_items=True)
    return of_fit(more)


def flat(prefix: str, values: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Arrays with their names, whatever they were nested in."""
    array = np.asarray(values)
    yield prefix, array if array.dtype.kind in "fiub" else array.astype(str)


def main() -> None:
    """Run the cases named, and save all arrays."""
    out, names = Path(sys.argv[1]), sys.argv[2:] or list(CASES)
    found: dict[str, np.ndarray] = {}
    for name in names:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for key, values in CASES[name]().items():
                found.update(flat(f"{name}.{key}", values))
    np.savez(out, **found)


if __name__ == "__main__":
    main()
