"""Grafting against gold posteriors.

Long importance sampling in the weights of the low-rank form, exact but for its own noise.

`make gold` prints, for each problem, the grafted curve's error in means (posterior sds) and in sds
(relative), root mean square over time, the error of the log evidence, both again for the refined
curve (second order), and the gold's own noise; then the same for steep guessing items, where the
Gaussian itself is off: whether every audit of 20,000 draws flags them, and how close they come, the
worst of several seeds (`make gold` takes a quarter of an hour; `--steep` is the last part alone).
"""

import argparse
import warnings
from itertools import product

import numpy as np
from scipy.special import ndtr

import dynaesti as dy
from dynaesti.core.linalg import symmetric_root
from dynaesti.inference.audit.exact import ExactLikelihood
from dynaesti.inference.audit.psis import smooth_weights
from dynaesti.inference.solvers.basis import solve_lower
from dynaesti.inference.solvers.weight_space import WeightPosterior

T = np.linspace(0, 1, 50)
SEEDS = 12
AUDITS = 5  # seeds of the audits of steep items


def draw_curve(rng: np.random.Generator, x: np.ndarray, h: float) -> np.ndarray:
    return symmetric_root(np.exp(-0.5 * ((x[:, None] - x) / h) ** 2)) @ rng.normal(size=x.size)


def problem(kind: str, n: int, seed: int) -> dy.Curve:
    rng = np.random.default_rng(seed)
    x = np.linspace(0, 1, n)
    theta = draw_curve(rng, x, 0.25)
    kernel = dy.RBF(0.25, amplitude=1.0)
    if kind == "polling":  # the paper's problem
        share = 0.28 * np.cos(6.2 * x + 1.4) + 0.25 * np.sin(9.7 * x) + 0.45
        return dy.CurvFiFE(kernel, refine=False).fit(
            x, dy.Bernoulli((rng.random(n) < share).astype(int))
        )
    if kind == "polls":
        return dy.CurvFiFE(kernel, refine=False).fit(
            x, dy.Bernoulli((rng.random(n) < ndtr(theta)).astype(int))
        )
    if kind == "counts":
        return dy.CurvFiFE(kernel, mean=1.0, refine=False).fit(
            x, dy.Poisson(rng.poisson(np.exp(1 + theta)))
        )
    if kind == "ordinal":
        cuts = [-1.0, 0.0, 1.0]
        return dy.CurvFiFE(kernel, refine=False).fit(
            x, dy.Ordinal(np.digitize(theta + rng.logistic(size=n), cuts), cuts)
        )
    a, b, c = np.exp(0.2 * rng.normal(size=n)), rng.normal(size=n), 0.2 * rng.random(n)
    right = rng.random(n) < c + (1 - c) / (1 + np.exp(-a * (theta - b)))
    return dy.CurvFiFE(kernel, refine=False).fit(
        x, dy.ItemResponses(right.astype(int), "3PL", a=a, b=b, c=c)
    )


def errors(curve: dy.Curve, draws: int) -> tuple[float, ...]:
    """Errors of one grafted curve, root mean square over time.

    Returns mean error in sds, relative sd error, evidence error, the last two of the refined curve,
    and the noise of these estimates.

    Draws come from the grafted Gaussian itself; their weights f/site differ little from 1, so the
    difference between the exact and the grafted moments is estimated with far less noise than
    either of them.
    """
    component = next(c for c in curve.components if c is not None)
    posterior, exact = component.posterior, ExactLikelihood(curve.observations, component)
    assert isinstance(posterior, WeightPosterior)
    rng = np.random.default_rng(11)
    at_sites, at_times = posterior.basis.features(component.instants), posterior.basis.features(T)
    logs, values = [], []
    for _ in range(draws // 20_000):
        z = rng.standard_normal((10_000, posterior.rank))
        z = np.concatenate([z, -z])  # antithetic
        w = posterior.weights + solve_lower(posterior.root, z.T, transposed=True).T
        g = w @ at_sites.T
        logs.append(
            exact(g)
            - g @ component.curve_shift
            + 0.5 * g**2 @ component.curve_precision
            + component.log_partition
        )
        values.append(w @ at_times.T)
    log_w, x = np.concatenate(logs), np.concatenate(values)
    weights, _ = smooth_weights(log_w)
    mean, sd = x.mean(axis=0), x.std(axis=0)
    extra = weights - 1 / weights.size
    shift = extra @ x
    widen = extra @ (x - mean) ** 2 - shift**2
    noise = np.sqrt((extra**2) @ ((x - mean) / sd) ** 2)
    evidence = curve.log_evidence - (np.log(np.mean(np.exp(log_w - log_w.max()))) + log_w.max())
    better, latent = curve.refined(), curve.latent
    left = 0.5 * widen / sd**2 - (better.latent.sd(T) / latent.sd(T) - 1)
    rms = [float(np.sqrt(np.mean(v**2))) for v in (shift / sd, 0.5 * widen / sd**2, left, noise)]
    return (
        rms[0],
        rms[1],
        float(evidence),
        rms[2],
        float(evidence + better.log_evidence - curve.log_evidence),
        rms[3],
    )


def ordinary(draws: int) -> None:
    print(
        f"{'problem':<9} {'n':>5} {'mean (sd)':>10} {'sd':>8} {'evidence':>9} {'sd refined':>11} "
        f"{'evidence':>9} {'gold noise':>11}"
    )
    for kind, n in product(("polling", "polls", "counts", "ordinal", "3PL"), (100, 500, 2000)):
        rows = np.array(
            [errors(problem(kind, n, seed), max(draws * 100 // n, 40_000)) for seed in range(SEEDS)]
        )
        mean, sd, evidence, left, rest, noise = np.sqrt(np.mean(rows**2, axis=0))
        print(
            f"{kind:<9} {n:>5} {mean:>10.4f} {sd:>8.2%} {evidence:>9.4f} {left:>11.2%} "
            f"{rest:>9.4f} {noise:>11.4f}",
            flush=True,
        )


def steep(draws: int) -> None:
    print(
        f"\n{'a':>2} {'b':>2} {'c':>5} {'sweeps':>7} {'Gaussian off':>13} {'flagged':>8} "
        f"{'corrected off':>14} {'gold noise':>11}"
    )
    for a, b, c in product((4.0, 8.0), (0.0, 1.0, 2.0), (0.33, 0.5)):
        rng = np.random.default_rng(int(10 * a + b + 100 * c))
        x = np.linspace(0, 1, 500)
        right = rng.random(500) < c + (1 - c) / (1 + np.exp(-a * (draw_curve(rng, x, 0.2) - b)))
        curve = dy.CurvFiFE(bandwidth=0.2).fit(
            x, dy.ItemResponses(right.astype(int), "3PL", a=a, b=b, c=c)
        )
        gold, audits = (
            curve.audit(draws, seed=1),
            [curve.audit(20_000, seed=2 + k) for k in range(AUDITS)],
        )
        truth, sd = gold.mean(T), gold.sd(T)
        worst = np.abs((curve.mean(T) - truth) / sd).max()
        left = max(float(np.sqrt(np.mean(((audit.mean(T) - truth) / sd) ** 2))) for audit in audits)
        flagged = sum(not audit.safe for audit in audits)
        print(
            f"{a:>2.0f} {b:>2.0f} {c:>5} {curve.sweeps:>7} {worst:>10.2f} sd {flagged:>3} of "
            f"{AUDITS} {left:>11.3f} sd "
            f"{1 / np.sqrt(gold.ess):>11.4f}",
            flush=True,
        )


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks gold", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fifth of the draws")
    parser.add_argument("--steep", action="store_true", help="steep guessing items alone")
    args = parser.parse_args(arguments)
    warnings.simplefilter("ignore", dy.ConvergenceWarning)
    if not args.steep:
        ordinary(80_000 if args.quick else 400_000)
    steep(60_000 if args.quick else 200_000)
