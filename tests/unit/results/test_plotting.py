"""Figures show the numbers they are made from."""

from numpy.testing import assert_allclose


def test_plot_draws_what_plot_data_says(curve):
    axes = curve.plot(level=0.9)
    data = curve.plot_data(level=0.9)
    assert_allclose(axes.lines[0].get_ydata(), data["median"])
    assert_allclose(axes.lines[1].get_ydata(), data["emission"])
    assert "90" in axes.get_legend().get_texts()[0].get_text()
    assert curve.latent.plot_data()["emission"] is None
