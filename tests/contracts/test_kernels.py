"""Every kernel: slopes, features, sharp Gaussian emissions."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from dynaesti.inference.solvers.basis import kernel_basis
from support.kernels import KERNELS, SMOOTH, T, placed


@pytest.mark.parametrize(
    "kernel", [dy.Matern12(0.4), dy.Matern32(0.4), dy.Matern52(0.4), dy.Wiener(1.0), dy.RBF(0.4)]
)
@pytest.mark.parametrize("sd", [1e-2, 1e-4, 1e-6])
def test_sharp_gaussians_settle_in_one_sweep(kernel, sd):
    t = np.linspace(0, 1, 60)
    y = np.sin(5 * t)
    curve = dy.CurvFiFE(replace(kernel, amplitude=1.0), mean=0.0).fit(t, dy.Gaussian(y, sd))
    assert curve.converged
    assert curve.sweeps == 1
    assert np.abs(curve.mean(t) - y).max() < 0.02
    assert np.isfinite(curve.loo).all()


@pytest.mark.parametrize("name", SMOOTH)
def test_slopes_are_derivatives(name):
    kernel, s, t, e = placed(name), np.array([3.1, 4.0, 9.2]), np.array([7.7, 4.6, 1.0]), 1e-5
    assert_allclose(
        kernel.cov_slope(s, t),
        (kernel.cov(s + e, t) - kernel.cov(s - e, t)) / (2 * e),
        rtol=1e-5,
        atol=1e-8,
    )
    assert_allclose(
        kernel.cov_slopes(s, t),
        (kernel.cov_slope(s, t + e) - kernel.cov_slope(s, t - e)) / (2 * e),
        rtol=1e-4,
        atol=1e-7,
    )


@pytest.mark.parametrize("name", [k for k in KERNELS if placed(k).low_rank])
def test_features_reproduce_the_covariance(name):
    kernel = placed(name)
    basis = kernel_basis(kernel, 0.0, 10.0)
    b = basis.features(T)
    assert_allclose(b @ b.T, kernel.cov(T[:, None], T), atol=1e-7 * kernel.cov(T, T).max())
    e = 1e-5
    assert_allclose(
        basis.slopes(T), (basis.features(T + e) - basis.features(T - e)) / (2 * e), atol=1e-5
    )
