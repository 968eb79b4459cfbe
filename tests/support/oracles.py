"""Slow truths for the fast paths: textbook algebra, sums over grids, adaptive quadrature."""

import numpy as np
import pandas as pd
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import expit, ndtr
from scipy.stats import norm

from dynaesti.estimation.grid import ability_grid
from dynaesti.estimation.m_step import maximise_items
from dynaesti.estimation.people import EStepRequest
from dynaesti.model.links import BUILT_IN, LinkedPoints
from dynaesti.tables import as_frame


def rbf(s, t, h):
    """Covariance of a unit RBF curve between two lists of times."""
    return np.exp(-0.5 * ((np.asarray(s)[:, None] - np.asarray(t)) / h) ** 2)


def dense_posterior(kernel, times, precision, shift):
    """Means, variances and log partition of a dense Gaussian process given Gaussian sites.

    (K⁻¹ + T)⁻¹ without inverting K.
    """
    k = kernel.cov(times[:, None], times)
    post = np.linalg.solve(np.eye(times.size) + k * precision, k)
    return (
        post @ shift,
        np.diag(post),
        0.5 * shift @ post @ shift - 0.5 * np.linalg.slogdet(np.eye(times.size) + k * precision)[1],
    )


def brute_force_emissions(times, emissions, link, h, nugget=1e-4, size=61):
    """Means, sds and log evidence of three emission values on a three-dimensional grid, nugget
    included.
    """
    root = np.linalg.cholesky(rbf(times, times, h) + nugget * np.eye(3))
    axis = np.linspace(-7, 7, size)
    z = np.stack(np.meshgrid(axis, axis, axis, indexing="ij")).reshape(3, -1)
    x = root @ z
    log_w = -0.5 * (z**2).sum(axis=0) + emissions.log_prob(
        LinkedPoints(x, BUILT_IN[link]), np.arange(3)
    ).sum(axis=0)
    w = np.exp(log_w - log_w.max())
    mean = x @ w / w.sum()
    sd = np.sqrt(((x - mean[:, None]) ** 2) @ w / w.sum())
    evidence = np.log(w.sum()) + log_w.max() + 3 * np.log((axis[1] - axis[0]) / np.sqrt(2 * np.pi))
    return mean, sd, evidence


def brute_force_curve(t, log_lik, h, size=141):
    """Sds of a unit RBF curve at three times and its log evidence, by a sum over a grid in three
    dimensions.
    """
    grid = np.linspace(-7, 7, size)
    cov = rbf(t, t, h) + 1e-9 * np.eye(3)
    x = np.stack(np.meshgrid(grid, grid, grid, indexing="ij"), axis=-1)
    log_p = -0.5 * np.einsum("abci,ij,abcj->abc", x, np.linalg.inv(cov), x)
    prior = np.logaddexp.reduce(log_p, axis=None)
    log_p = log_p + sum(f(x[..., i]) for i, f in enumerate(log_lik))
    whole = np.logaddexp.reduce(log_p, axis=None)
    p = np.exp(log_p - whole)
    mean = np.einsum("abc,abci->i", p, x)
    return np.sqrt(np.einsum("abc,abci->i", p, x**2) - mean**2), whole - prior


def papers_grafting(covariance, votes, sweeps=30):
    """Site precisions and shifts of probit votes by the formulae of the paper's appendix."""
    n = votes.size
    sign = 2 * votes - 1
    m, v = np.zeros(n), np.ones(n)
    grid = np.linspace(-8, 8, 4001)
    f = ndtr(sign[:, None] * grid)
    for _ in range(sweeps):
        p = np.linalg.inv(np.linalg.inv(covariance) + np.diag(1 / v))
        h = p + np.diag(p)[:, None] * p / (v - np.diag(p))[:, None]
        mu = (h * (np.ones((n, 1)) * (m / v) - np.diag(m / v))).sum(axis=1)
        rho = np.diag(h)
        w = f * np.exp(-0.5 * (grid - mu[:, None]) ** 2 / rho[:, None])
        nu = (w * grid).sum(axis=1) / w.sum(axis=1)
        gamma = (w * (grid - nu[:, None]) ** 2).sum(axis=1) / w.sum(axis=1)
        v = 1 / (1 / gamma - 1 / rho)
        m = v * (nu / gamma - mu / rho)
    return 1 / v, m / v


def adaptive_moments(emissions, link, mean, sd, lo=None, hi=None, points=()):
    """Log normaliser, mean and variance of all emissions under one cavity, by adaptive
    quadrature.
    """
    rows = np.arange(len(emissions))

    def log_f(x):
        points = LinkedPoints(np.tile(x, (rows.size, 1)), BUILT_IN[link])
        return emissions.log_prob(points, rows).sum(axis=0)

    lo, hi = (mean - 9 * sd if lo is None else lo), (mean + 9 * sd if hi is None else hi)
    grid = np.linspace(lo, hi, 4001)
    top = (log_f(grid) + norm.logpdf(grid, mean, sd)).max()

    def moment(k, c=0.0):
        return quad(
            lambda x: (x - c) ** k * np.exp(log_f(x)[0] + norm.logpdf(x, mean, sd) - top),
            lo,
            hi,
            points=[*points, mean],
            epsabs=0,
            epsrel=1e-11,
            limit=500,
        )[0]

    z = moment(0)
    m = moment(1) / z
    return np.log(z) + top, m, moment(2, m) / z


def guessing_rows(x, a, b, c):
    """Log-likelihoods of wrong and right answers to 3PL items at abilities x, two rows an item."""
    p = c[:, None] + (1 - c[:, None]) * expit(a[:, None] * (x - b[:, None]))
    return np.log(np.stack([1 - p, p], axis=1).reshape(-1, x.size))


def dense_static_abilities(items, start, row, coef, variance):
    """Log evidence, grid and posterior of each person's constant ability, by a dense sum."""
    x = np.linspace(-8, 8, 64001)
    table = guessing_rows(x, *items)
    for i in range(start.size - 1):
        mine = slice(start[i], start[i + 1])
        weight = np.bincount(row[mine], coef[mine], len(table))
        logs = weight @ table - 0.5 * x**2 / variance - 0.5 * np.log(2 * np.pi * variance)
        p = np.exp(logs - logs.max())
        yield logs.max() + np.log(p.sum() * (x[1] - x[0])), x, p / p.sum()


def log_prob_at(emissions, link="identity", x=None):
    """Log-likelihoods of all emissions at latent values x: (emissions, values)."""
    x = np.linspace(-3, 3, 7) if x is None else x
    rows = np.arange(len(emissions))
    return emissions.log_prob(LinkedPoints(np.tile(x, (rows.size, 1)), BUILT_IN[link]), rows)


def in_pandas(frame):
    """A table of any library as one of pandas, in which tests look things up."""
    return frame if isinstance(frame, pd.DataFrame) else as_frame(frame).to_pandas()


def assert_same_fit(sharded, whole, tolerance=1e-6):
    """Items, standard errors, priors, evidence and abilities of two fits are equal."""
    a, b = (in_pandas(fit.items).sort_values("item") for fit in (sharded, whole))
    for column in b.columns:
        if pd.api.types.is_numeric_dtype(b[column]):
            assert_allclose(
                a[column].to_numpy(),
                b[column].to_numpy(),
                atol=tolerance,
                rtol=tolerance,
                err_msg=column,
            )
    assert_allclose(sharded.population, whole.population, atol=tolerance)
    assert_allclose(sharded.log_evidence, whole.log_evidence, atol=100 * tolerance)
    assert len(sharded.trace) == len(whole.trace)
    mine, theirs = (
        in_pandas(fit.ability([0.2, 0.9]))
        .assign(id=lambda t: t["id"].astype(str))
        .sort_values(["id", "time"])
        for fit in (sharded, whole)
    )
    for column in ("mean", "sd", "lower", "upper"):
        assert_allclose(
            mine[column].to_numpy(), theirs[column].to_numpy(), atol=3 * tolerance, err_msg=column
        )


def assert_same_responses(one, two):
    """People, items, values and times of two `Responses` are equal."""
    assert one.people.tolist() == two.people.tolist()
    assert one.items.tolist() == two.items.tolist()
    assert_allclose(one.resp, two.resp)
    assert_allclose(one.offsets, two.offsets, atol=1e-9)


def log_normal(points, centre, var):
    """Log density of a normal with equal variances in all directions."""
    away = ((points - centre) ** 2).sum(axis=-1)
    return -0.5 * away / var - 0.5 * np.shape(points)[-1] * np.log(2 * np.pi * var)


def plain_em(people, bank, priors, iterations):
    """EM as the paper has it (section II-B): E-step, M-step, again; no extrapolation, no stages.

    Returns the bank after the last M-step and the objective before each.
    """
    objectives = []
    for _ in range(iterations):
        grid = ability_grid(bank)
        found = people.e_step(bank, grid, priors, EStepRequest(1e-8))
        priors = priors.reweighted(found.log_evidence)
        evidence = priors.log_evidence(found.log_evidence)
        objectives.append(evidence + bank.log_prior() + priors.log_prior_of_weights())
        bank = maximise_items(bank, found.counts, grid).bank
    return bank, np.array(objectives)
