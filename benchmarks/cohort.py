"""The cohort by simulation: whether it is found, bands cover, and tests of groups hold their level.

`python -m benchmarks cohort` runs all parts; `--parts` chooses, `--seeds` sets the replications of
the first parts, and `--replications` those of groups.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from typing import Any

import numpy as np

import dynaesti as dy

DAYS = np.array([5.0, 25.0, 50.0, 75.0, 95.0])
NEWCOMERS = np.array([2.0, 50.0, 98.0])


def class_that_learns(
    seed: int,
    people: int = 300,
    per_person: int = 20,
    rise: float = 3.0,
    treated: float = 1.0,
    model: str = "2PL",
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Answers over 100 days of people who all rise, half of them by more; and the truth."""
    world = dy.simulate.responses(
        people=people,
        items=60,
        per_person=per_person,
        model=model,
        growth=rise,
        groups={"control": 0.0, "treated": treated},
        seed=seed,
    )
    mean_rise = rise + treated / 2
    truth = {
        "cohort": lambda t: mean_rise * (np.asarray(t) / 100 - 0.5),
        "abilities": world.abilities,
        "items": world.items,
    }
    return world.table, truth


def one_class(arguments: tuple[int, dict[str, Any], dict[str, Any]]) -> dict[str, Any]:
    """The cohort of one simulated class, and the coverage of everyone's bands."""
    seed, data, options = arguments
    table, truth = class_that_learns(seed, **data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = dy.DynAEsti(**options).fit(table)
    starts = np.zeros(1)
    if options.get("clock") == "person":  # a day of it is one of the calendar's, later by the start
        starts = np.minimum.reduceat(np.asarray(table["date"]), fit.responses.person_start[:-1])
    cohort = fit.cohort(DAYS)
    ability = np.asarray(truth["abilities"]["ability"])
    bands = fit.ability(level=0.9)
    order = np.lexsort((truth["abilities"]["date"], truth["abilities"]["id"]))
    inside = (bands["lower"] <= ability[order]) & (ability[order] <= bands["upper"])
    days = np.asarray(truth["abilities"]["date"])[order]
    third = [inside[(days >= a) & (days < b)].mean() for a, b in ((0, 10), (45, 55), (90, 100))]
    items = truth["items"]["item"]
    asked = {
        "id": np.repeat("nobody", NEWCOMERS.size * len(items)),
        "item": np.tile(items, NEWCOMERS.size),
        "date": np.repeat(NEWCOMERS, len(items)),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        guessed = fit.predict(asked)["expected"].to_numpy()
    return {
        "cohort": cohort["mean"].to_numpy() - truth["cohort"](DAYS + starts.mean()),
        "se": cohort["sd"].to_numpy(),
        "cover": third,
        "newcomers": guessed.reshape(NEWCOMERS.size, -1).mean(axis=1)
        - expected_of_newcomers(seed, data, truth, starts),
        "root_mean_square": float(np.sqrt(np.mean(fit.cohort()["mean"] ** 2))),
        "rise": float(np.diff(fit.cohort([0.0, 100.0])["mean"])[0]),
    }


def expected_of_newcomers(
    seed: int, data: dict[str, Any], truth: dict[str, Any], starts: np.ndarray
) -> np.ndarray:
    """Mean response of people never seen, at three days: by many more of them."""
    model = data.get("model", "2PL")
    rng = np.random.default_rng([seed, 1])
    rises = data.get("rise", 3.0) + data.get("treated", 1.0) * rng.integers(0, 2, 20_000)
    names = [name for name in truth["items"] if name != "item"]
    from dynaesti.model import MODELS

    item = MODELS[model]()
    size = 2 if item.binary else 4
    u = item.unconstrain({name: np.asarray(truth["items"][name]) for name in names}, size)
    out = []
    for day in NEWCOMERS:
        calendar = day + rng.choice(starts, rises.size)
        theta = rng.standard_normal(rises.size) + rises * (calendar / 100 - 0.5)
        chances = np.exp(item.log_likelihood(u, np.tile(theta, (len(u), 1))))
        out.append((np.arange(size)[:, None] * chances).sum(axis=1).mean())
    return np.array(out)


def groups_once(arguments: tuple[int, float]) -> tuple[float, float, float]:
    """Difference in growth of two groups of 100 people × 40 answers, with its interval."""
    seed, apart = arguments
    drawn = dy.simulate.responses(
        people=200,
        items=60,
        per_person=40,
        growth=1.0,
        groups={"a": 0.0, "b": apart},
        seed=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = dy.DynAEsti("2PL", groups="group", threads=1).fit(drawn.table)
    row = fit.compare_groups(0.0, 100.0)
    (growth,) = row[row["what"] == "growth"].rows()
    return -float(growth["difference"]), -float(growth["upper"]), -float(growth["lower"])


def in_processes(work: Callable[[Any], Any], arguments: list[Any]) -> list[Any]:
    """Results of independent replications, on two processes."""
    with ProcessPoolExecutor(2) as pool:
        return list(pool.map(work, arguments, chunksize=4))


def classes(seeds: int, data: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """Means over replications of `one_class`."""
    options = {"threads": 1, **options}
    found = in_processes(one_class, [(seed, data, options) for seed in range(seeds)])
    return {
        "cohort - truth on days 5, 25, 50, 75, 95": _mean(found, "cohort"),
        "its sd over seeds": np.std([one["cohort"] for one in found], axis=0).round(3).tolist(),
        "its standard error": _mean(found, "se"),
        "90 % bands cover on days 5, 50, 95": _mean(found, "cover"),
        "newcomers - truth on days 2, 50, 98": _mean(found, "newcomers"),
        "rise": round(float(np.mean([one["rise"] for one in found])), 3),
        "root mean square of the cohort": _mean(found, "root_mean_square"),
    }


def _mean(found: list[dict[str, Any]], name: str) -> Any:
    return np.mean([one[name] for one in found], axis=0).round(3).tolist()


def groups(replications: int, apart: float) -> dict[str, Any]:
    """Bias, coverage and rejections of differences in growth."""
    found = np.array(in_processes(groups_once, [(seed, apart) for seed in range(replications)]))
    inside = (found[:, 1] <= apart) & (apart <= found[:, 2])
    return {
        "replications": replications,
        "bias": round(float(found[:, 0].mean() - apart), 4),
        "95 % intervals cover": round(float(inside.mean()), 4),
        "no difference is rejected": round(
            float(((found[:, 1] > 0) | (found[:, 2] < 0)).mean()), 4
        ),
        "sd": round(float(found[:, 0].std()), 4),
        "mean standard error": round(float((found[:, 2] - found[:, 1]).mean() / 2 / 1.96), 4),
    }


def posterior_by_nuts(fit: Any, items: dict[str, Any] | None) -> np.ndarray:
    """Draws of the common line's coefficient by numpyro, of a fit at two dates.

    `items` are the true ones; None: they are learned too, under the fit's priors.
    """
    import jax
    import numpyro
    from numpyro import distributions as dist
    from numpyro.infer import MCMC, NUTS

    r = fit.responses
    line = fit.priors.cohort.basis.columns(r.clock_times)[:, 1]
    spread = fit.bank.blocks[0].item_prior.spread
    n_items = r.items.size

    def model() -> None:
        theta = numpyro.sample("theta", dist.Normal(0, 1).expand([r.people.size]))
        slope = numpyro.sample("slope", dist.Normal(0, 5.0))
        if items is None:
            a = jax.numpy.exp(numpyro.sample("a", dist.Normal(0, spread[0]).expand([n_items])))
            b = numpyro.sample("b", dist.Normal(0, spread[1]).expand([n_items]))
        else:
            a, b = np.asarray(items["a"]), np.asarray(items["b"])
        logits = a[r.item] * (theta[r.person] + slope * line - b[r.item])
        numpyro.sample("y", dist.Bernoulli(logits=logits), obs=r.resp)

    sampler = MCMC(NUTS(model), num_warmup=600, num_samples=3000, progress_bar=False)
    sampler.run(jax.random.PRNGKey(0))
    return np.asarray(sampler.get_samples()["slope"])


def beside_numpyro() -> dict[str, Any]:
    """Standard errors of a common line, beside the posterior sd by NUTS; items known, and learned.

    100 people with constant abilities, 15 answers each, at two dates.
    """
    if find_spec("numpyro") is None:
        return {"left out": "numpyro is not installed; `make bench-peers` installs it"}
    drawn = dy.simulate.responses(
        people=100, items=20, per_person=15, growth=2.0, level=1.0, seed=4
    )
    table = {**drawn.table, "date": np.where(drawn.table["date"] < 50, 0.0, 1.0)}
    names = ("item", "a", "b")
    fixed = {k: {"a": a, "b": b} for k, a, b in zip(*map(drawn.items.get, names), strict=True)}
    static = {"bandwidth": np.inf, "cohort": "learn"}
    known = dy.DynAEsti("2PL", fixed=fixed, population=(0.0, 1.0), **static).fit(table)
    learned = dy.DynAEsti("2PL", **static).fit(table)
    out = {}
    for name, fit, items in (("known", known, drawn.items), ("learned", learned, None)):
        theirs = posterior_by_nuts(fit, items)
        cohort = fit.priors.cohort
        se = float(np.sqrt(cohort.covariance[0, 0]))
        out[f"items {name}"] = {
            "ours": [round(float(cohort.coefficients[0]), 4), round(se, 4)],
            "NUTS": [round(float(theirs.mean()), 4), round(float(theirs.std()), 4)],
            "ratio of standard errors": round(se / float(theirs.std()), 3),
        }
    return out


def cost() -> dict[str, Any]:
    """CPU time of fits with a cohort, over that of fits without, in one run."""
    out = {}
    for people, per_person in ((300, 20), (1000, 15), (2000, 50), (10_000, 40)):
        table = dy.simulate.responses(people=people, items=100, per_person=per_person).table
        spent: dict[Any, list[float]] = {None: [], "learn": []}
        for _ in range(3):
            for cohort, seconds in spent.items():
                begun = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    dy.DynAEsti("2PL", cohort=cohort).fit(table)
                seconds.append(time.process_time() - begun)
        out[f"{people} people × {per_person}"] = round(min(spent["learn"]) / min(spent[None]), 3)
    return out


def parts(seeds: int, replications: int) -> dict[str, Callable[[], Any]]:
    """All parts by name."""
    small = {"people": 1000, "per_person": 15, "treated": 0.0}
    return {
        "rise of 3": lambda: classes(seeds, {}, {"model": "2PL"}),
        "rise of 3, 3PL": lambda: classes(seeds, {"model": "3PL"}, {"model": "3PL"}),
        "rise of 3, GRM": lambda: classes(seeds, {"model": "GRM"}, {"model": "GRM"}),
        "rise of 3, person's clock": lambda: classes(seeds, {}, {"clock": "person"}),
        "rise of 1, 1,000 × 15": lambda: classes(seeds, {**small, "rise": 1.0}, {}),
        "no rise, 1,000 × 15": lambda: classes(seeds, {**small, "rise": 0.0}, {}),
        "groups 0.8 apart": lambda: groups(replications, 0.8),
        "groups alike": lambda: groups(5 * replications, 0.0),
        "standard errors beside numpyro": beside_numpyro,
        "cost": cost,
    }


def main(arguments: list[str]) -> None:
    """Run the parts and print what was found, as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks cohort", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--replications", type=int, default=200)
    parser.add_argument("--parts", nargs="*", help="names of parts, or their beginnings")
    args = parser.parse_args(arguments)
    for name, run in parts(args.seeds, args.replications).items():
        if args.parts and not any(name.startswith(part) for part in args.parts):
            continue
        begun = time.perf_counter()
        found = run()
        print(json.dumps({name: found}, ensure_ascii=False, indent=1), flush=True)
        print(f"# {time.perf_counter() - begun:.0f} s", flush=True)
