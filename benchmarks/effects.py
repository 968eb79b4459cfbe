"""Effects beside numpyro, and practice on next answers of new learners.

`python -m benchmarks effects` runs both parts; `--parts` chooses, `--data` is the folder of the
real logs.
"""

import argparse
import json
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import dynaesti as dy
from benchmarks.peers import next_answers


def beside_numpyro(samples: int = 6000) -> dict[str, Any]:
    """Effects of a column of people and of one of answers, items known, beside NUTS.

    100 people with constant abilities, 15 answers each: differences in standard errors.
    """
    if find_spec("numpyro") is None:
        return {"left out": "numpyro is not installed; `make bench-peers` installs it"}
    import jax
    import numpyro
    from numpyro import distributions as dist
    from numpyro.infer import MCMC, NUTS

    numpyro.enable_x64()
    drawn = dy.simulate.responses(people=100, items=20, per_person=15, level=1.0, seed=4)
    rng = np.random.default_rng(4)
    person = np.unique(drawn.table["id"], return_inverse=True)[1]
    age = rng.normal(size=100)[person]
    load = rng.normal(size=person.size)
    a, b = (np.asarray(drawn.items[name]) for name in ("a", "b"))
    item = np.array([int(name[1:]) for name in drawn.table["item"]])
    theta = np.asarray(drawn.abilities["ability"]) + 0.4 * age + 0.3 * load
    resp = (rng.random(person.size) < 1 / (1 + np.exp(-a[item] * (theta - b[item])))).astype(int)
    table = {**drawn.table, "resp": resp, "age": age, "load": load}
    names = drawn.items["item"]
    fixed = {name: {"a": x, "b": y} for name, x, y in zip(names, a, b, strict=True)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = dy.DynAEsti(
            "2PL",
            bandwidth=np.inf,
            effects="age + load",
            fixed=fixed,
            population=(0.0, 1.0),
        ).fit(table)

    def model() -> None:
        # columns are centred, so that abilities keep their stated mean
        z = numpyro.sample("z", dist.Normal(0, 1).expand([100]))
        beta = numpyro.sample("beta", dist.Normal(0, 1000.0).expand([2]))
        seen = z[person] + beta[0] * (age - age.mean()) + beta[1] * (load - load.mean())
        numpyro.sample("y", dist.Bernoulli(logits=a[item] * (seen - b[item])), obs=resp)

    sampler = MCMC(NUTS(model), num_warmup=1000, num_samples=samples, progress_bar=False)
    sampler.run(jax.random.PRNGKey(0))
    theirs = np.asarray(sampler.get_samples()["beta"])
    found = fit.effects
    estimate, se = (np.asarray(found[name]) for name in ("estimate", "se"))
    return {
        "ours": [estimate.round(4).tolist(), se.round(4).tolist()],
        "NUTS": [theirs.mean(axis=0).round(4).tolist(), theirs.std(axis=0).round(4).tolist()],
        "difference in standard errors": ((estimate - theirs.mean(axis=0)) / se).round(3).tolist(),
        "ratio of standard errors": (se / theirs.std(axis=0)).round(3).tolist(),
    }


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks effects")
    parser.add_argument("--parts", nargs="+", default=["numpyro", "next"])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args(arguments)
    if "numpyro" in args.parts:
        print(json.dumps({"beside numpyro": beside_numpyro()}, indent=1), flush=True)
    if "next" in args.parts:
        for name, job in next_answers.jobs(args.data, None, args.seeds).items():
            print(json.dumps({name: job()}, indent=1), flush=True)
