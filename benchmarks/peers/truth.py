"""Truth of the posterior.

Simulation-based calibration of the whole pipeline, and small problems against NUTS.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit, ndtr
from scipy.stats import chi2, multivariate_normal

import dynaesti as dy
from benchmarks.peers.data import Jobs
from dynaesti.inference.marginals import Marginals

BINS = 20
LEVEL, BANDWIDTH = 0.5, 0.4  # the level's part of the variance, and the bandwidth of what moves
LOG_SLOPE_SD, DIFFICULTY_SD = 0.5, 2.0  # the weak priors of 2PL items, from which they are drawn
PEOPLE, ITEMS, ANSWERS = 60, 12, 20
DRAWS = 40  # of the items, for bands that know of their uncertainty


def kernel() -> dy.Kernel:
    return dy.Level(amplitude=np.sqrt(LEVEL)) + dy.Matern32(BANDWIDTH, amplitude=np.sqrt(1 - LEVEL))


def covariance(t: np.ndarray) -> np.ndarray:
    """Of that kernel."""
    r = np.sqrt(3) * np.abs(t[:, None] - t) / BANDWIDTH
    return LEVEL + (1 - LEVEL) * (1 + r) * np.exp(-r) + 1e-9 * np.eye(t.size)


@dataclass(frozen=True)
class SimulatedResponses:
    """Answers drawn from the model's own prior, the items, and one true ability at one time."""

    table: dict[str, np.ndarray]
    a: np.ndarray
    b: np.ndarray
    who: int
    when: float
    truth: float


def drawn(
    rng: np.random.Generator, people: int = PEOPLE, items: int = ITEMS, answers: int = ANSWERS
) -> SimulatedResponses:
    a, b = np.exp(rng.normal(0.0, LOG_SLOPE_SD, items)), rng.normal(0.0, DIFFICULTY_SD, items)
    who, when, truth, rows = int(rng.integers(people)), float(rng.uniform(0, 1)), np.nan, []
    for p in range(people):
        t = np.append(np.sort(rng.uniform(0, 1, answers)), when)
        z = np.linalg.cholesky(covariance(t)) @ rng.standard_normal(t.size)
        item = rng.integers(0, items, answers)
        y = rng.uniform(size=answers) < expit(a[item] * (z[:-1] - b[item]))
        rows.append((np.full(answers, p), item, y * 1.0, t[:-1]))
        truth = float(z[-1]) if p == who else truth
    person, item, y, t = (np.concatenate(part) for part in zip(*rows, strict=True))
    return SimulatedResponses(
        {"id": person, "item": item, "resp": y, "date": t}, a, b, who, when, truth
    )


# --- calibration by simulation


def known_items(data: SimulatedResponses) -> Marginals:
    """The person's curve, items known."""
    mine = data.table["id"] == data.who
    item = data.table["item"][mine]
    answers = dy.ItemResponses(
        data.table["resp"][mine].astype(int), "2PL", a=data.a[item], b=data.b[item]
    )
    return dy.CurvFiFE(kernel()).fit(data.table["date"][mine], answers).marginals([data.when])


def learned_items(data: SimulatedResponses) -> Marginals:
    """The person's curve with items learned from everyone; its band includes their uncertainty."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = dy.DynAEsti("2PL", kernel=kernel(), threads=1).fit(data.table)
    return fit.uncertain_mixture(data.who, fit.responses.axis.offsets(np.array([data.when])), DRAWS)


def certain_items(data: SimulatedResponses) -> Marginals:
    """The same in the ordinary band, which takes items as if they were known."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = dy.DynAEsti("2PL", kernel=kernel(), threads=1, standard_errors=False).fit(data.table)
    return fit.curve(data.who).marginals([data.when])


PIPELINES: dict[str, Callable[[SimulatedResponses], Marginals]] = {
    "items known": known_items,
    "items learned": learned_items,
    "items learned, taken as known": certain_items,
}


def calibrated(name: str, sets: int, seed: int = 0) -> dict[str, Any]:
    """Ranks of the truth in its posterior, one a data set, and the χ² test of their being uniform."""
    ranks, begun = [], time.process_time()
    for k in range(sets):
        data = drawn(np.random.default_rng([seed, k]))
        mix = PIPELINES[name](data)
        ranks.append(float((mix.weights * ndtr((data.truth - mix.means) / mix.sds)).sum()))
    counts = np.bincount(np.minimum((np.array(ranks) * BINS).astype(int), BINS - 1), minlength=BINS)
    statistic = float(((counts - sets / BINS) ** 2 / (sets / BINS)).sum())
    return {
        "sets": sets,
        "counts": counts.tolist(),
        "chi2": statistic,
        "p": float(chi2.sf(statistic, BINS - 1)),
        "mean_rank": float(np.mean(ranks)),
        "cover_70": float(np.mean(np.abs(np.array(ranks) - 0.5) < 0.35)),
        "cover_95": float(np.mean(np.abs(np.array(ranks) - 0.5) < 0.475)),
        "cpu_seconds": time.process_time() - begun,
    }


# --- against NUTS

SMALL = {"people": 12, "items": 6, "answers": 12}
WARM_UP, SAMPLES = 1000, 20_000
EVIDENCE_DRAWS = 200_000


def sampled(data: SimulatedResponses, items_known: bool) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean and sd of every answer's ability by NUTS (numpyro).

    Items are known, or learned with the same weak priors.
    """
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    jax.config.update("jax_enable_x64", True)
    table = data.table
    roots = np.array(
        [
            np.linalg.cholesky(covariance(table["date"][table["id"] == p]))
            for p in np.unique(table["id"])
        ]
    )
    item = jnp.asarray(table["item"])

    def model() -> None:
        if items_known:
            a, b = jnp.asarray(data.a), jnp.asarray(data.b)
        else:
            a = jnp.exp(
                numpyro.sample("log_a", dist.Normal(0.0, LOG_SLOPE_SD).expand([data.a.size]))
            )
            b = numpyro.sample("b", dist.Normal(0.0, DIFFICULTY_SD).expand([data.b.size]))
        white = numpyro.sample("white", dist.Normal(0.0, 1.0).expand(list(roots.shape[:2])))
        z = numpyro.deterministic("z", jnp.einsum("pij,pj->pi", jnp.asarray(roots), white).ravel())
        numpyro.sample(
            "y", dist.Bernoulli(logits=a[item] * (z - b[item])), obs=jnp.asarray(table["resp"])
        )

    run = MCMC(NUTS(model), num_warmup=WARM_UP, num_samples=SAMPLES, progress_bar=False)
    run.run(jax.random.PRNGKey(0))
    z = np.asarray(run.get_samples()["z"])
    return z.mean(axis=0), z.std(axis=0)


def evidence_of(
    curve: dy.Curve,
    t: np.ndarray,
    item: np.ndarray,
    y: np.ndarray,
    data: SimulatedResponses,
    rng: np.random.Generator,
) -> float:
    """Log evidence of one person's answers by importance sampling.

    Draws come from a Gaussian with the curve's mean and its covariance, widened.
    """
    mean, cov = curve.marginals(t).means[0], 1.2 * curve.covariance(t) + 1e-9 * np.eye(t.size)
    draws = multivariate_normal(mean, cov).rvs(EVIDENCE_DRAWS, random_state=rng)
    logit = data.a[item] * (draws - data.b[item])
    logs = (y * logit - np.logaddexp(0.0, logit)).sum(axis=1) + multivariate_normal(
        np.zeros(t.size), covariance(t)
    ).logpdf(draws)
    logs -= multivariate_normal(mean, cov).logpdf(draws)
    return float(np.logaddexp.reduce(logs) - np.log(EVIDENCE_DRAWS))


def against_nuts(seed: int = 0) -> dict[str, Any]:
    """Means, sds and evidence of a small problem, items known and learned.

    Distances in posterior sds.
    """
    data = drawn(np.random.default_rng(seed), **SMALL)
    table, out = data.table, {}
    people = np.unique(table["id"])
    begun, found, apart, rng = time.process_time(), [], [], np.random.default_rng(1)
    curves = {}
    for p in people:
        mine = table["id"] == p
        item, y, t = table["item"][mine], table["resp"][mine], table["date"][mine]
        curves[p] = dy.CurvFiFE(kernel()).fit(
            t, dy.ItemResponses(y.astype(int), "2PL", a=data.a[item], b=data.b[item])
        )
        mix = curves[p].marginals(t)
        found.append((mix.means[0], mix.sds[0]))
    spent = time.process_time() - begun
    for p in people:
        mine = table["id"] == p
        exact = evidence_of(
            curves[p], table["date"][mine], table["item"][mine], table["resp"][mine], data, rng
        )
        apart.append(curves[p].log_evidence - exact)
    mean, sd = (np.concatenate(part) for part in zip(*found, strict=True))
    out["items known"] = {
        **_apart(mean, sd, data, True),
        "cpu_seconds": spent,
        "log_evidence_off_mean": float(np.mean(np.abs(apart))),
        "log_evidence_off_most": float(np.max(np.abs(apart))),
    }
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = dy.DynAEsti("2PL", kernel=kernel(), threads=1).fit(table)
    parts = [
        fit.uncertain_mixture(p, fit.responses.axis.offsets(table["date"][table["id"] == p]), 200)
        for p in people
    ]
    mean = np.concatenate([(m.weights * m.means).sum(axis=0) for m in parts])
    sd = np.sqrt(
        np.concatenate([(m.weights * (m.means**2 + m.sds**2)).sum(axis=0) for m in parts]) - mean**2
    )
    spent = time.process_time() - begun
    out["items learned"] = {**_apart(mean, sd, data, False), "cpu_seconds": spent}
    return out


def _apart(
    mean: np.ndarray, sd: np.ndarray, data: SimulatedResponses, items_known: bool
) -> dict[str, float]:
    begun = time.process_time()
    gold_mean, gold_sd = sampled(data, items_known)
    off, wide = np.abs(mean - gold_mean) / gold_sd, sd / gold_sd - 1
    return {
        "abilities": int(mean.size),
        "mean_off_in_sds": float(off.mean()),
        "mean_off_most": float(off.max()),
        "sd_off_mean": float(np.abs(wide).mean()),
        "sd_off_most": float(np.abs(wide).max()),
        "nuts_cpu_seconds": time.process_time() - begun,
    }


def jobs(sets: int) -> Jobs:
    """Both parts."""
    return {
        **{f"sbc {name}": partial(calibrated, name, sets) for name in PIPELINES},
        **{f"nuts {seed}": partial(against_nuts, seed) for seed in range(3)},
    }
