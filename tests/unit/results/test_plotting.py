"""Figures show the numbers they are made from, and return their axes."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from numpy.testing import assert_allclose

import dynaesti as dy
from dynaesti.tables import as_frame


@pytest.fixture(scope="module")
def fit():
    drawn = dy.simulate.responses(
        people=40, items=8, per_person=25, growth=2.0, groups={"a": 0.0, "b": 1.0}, seed=2
    )
    return dy.DynAEsti("2PL", groups="group").fit(drawn.table)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_plot_draws_what_plot_data_says(curve):
    axes = curve.plot(level=0.9)
    assert_allclose(axes.lines[0].get_ydata(), curve.plot_data(level=0.9)["median"])
    assert_allclose(axes.lines[1].get_ydata(), curve.observed_data()["value"])
    assert "90" in axes.get_legend().get_texts()[0].get_text()
    assert len(curve.latent.observed_data()) == 0


@pytest.mark.parametrize(
    ("name", "arguments", "columns"),
    [
        ("curves", (["p00", "p01"],), {"id", "mean", "lower"}),
        ("many", (), {"id", "time", "mean"}),
        ("cohort", (), {"group", "mean", "upper"}),
        ("fan", ("p03",), {"level", "median", "lower"}),
        ("filtered", ("p03",), {"smoothed", "filtered_upper"}),
        ("item", ("i1",), {"ability", "0", "1"}),
        ("item_fit", ("i1",), {"ability", "observed", "expected", "se", "n"}),
        ("information", (), {"ability", "information"}),
        ("information_over_time", (), {"from", "until", "information"}),
        ("wright", (), {"what", "label", "location"}),
        ("calibration", (), {"predicted", "observed"}),
        ("dif", ("group",), {"item", "effect"}),
        ("drift", (), {"item", "time", "easier"}),
    ],
)
def test_every_figure_returns_axes_and_has_a_frame(fit, name, arguments, columns):
    assert isinstance(getattr(fit.plot, name)(*(() if name == "many" else arguments)), Axes)
    frame = getattr(fit.plot, f"{name}_data")(*arguments)
    assert columns <= set(as_frame(frame).columns)
    assert len(frame) > 0
    given = plt.figure().add_subplot()
    assert getattr(fit.plot, name)(*arguments, ax=given) is given


def test_the_cohort_s_ribbon_is_the_cohort(fit):
    axes = fit.plot.cohort()
    frame = fit.cohort()
    assert [line.get_label() for line in axes.lines] == ["a", "b"]
    assert_allclose(axes.lines[1].get_ydata(), frame["mean"][frame["group"] == "b"])


def test_a_fan_s_bands_hold_each_other_and_are_those_of_the_fit(fit):
    frame = fit.plot.fan_data("p03", at=[10.0, 150.0])
    assert (np.diff(frame["upper"][frame["time"] == 150.0]) > 0).all()
    assert (np.diff(frame["lower"][frame["time"] == 150.0]) < 0).all()
    inner = fit.ability([10.0, 150.0], ["p03"], level=0.5)
    assert_allclose(frame["lower"][frame["level"] == 0.5], inner["lower"], atol=1e-8)


def test_filtered_and_smoothed_meet_at_the_last_answer(fit):
    frame = fit.plot.filtered_data("p05")
    assert abs(frame["smoothed"][-1] - frame["filtered"][-1]) < 1e-4
    assert (frame["filtered_upper"] - frame["filtered_lower"])[0] > (
        frame["smoothed_upper"] - frame["smoothed_lower"]
    )[0]


def test_item_fit_compares_sums_over_all_answers(fit):
    frame = fit.plot.item_fit_data("i2", bins=4)
    mine = fit.responses.item == fit.responses.items.tolist().index("i2")
    assert frame["n"].sum() == mine.sum()
    assert_allclose((frame["observed"] * frame["n"]).sum(), fit.responses.resp[mine].sum())
    assert (np.abs(frame["observed"] - frame["expected"]) < 4 * frame["se"]).all()


def test_influence_is_drawn_where_it_is(curve):
    axes = curve.plot_influence()
    frame = curve.plot_influence_data()
    shown = np.concatenate([np.asarray(part.get_offsets()) for part in axes.collections[1:]])
    order = np.argsort(shown[:, 0], kind="stable")
    assert_allclose(shown[order, 1], np.asarray(frame["median"]), rtol=1e-9)
    assert_allclose(frame["shift_in_sd"], curve.influence()["shift_in_sd"])


def test_many_answers_stand_at_the_edges(fit):
    table = dy.simulate.responses(people=12, items=6, per_person=90, seed=3).table
    busy = dy.DynAEsti("2PL").fit(table)
    ticks = busy.plot.curves(["p03"], answers=True).lines[1:]
    assert [line.get_marker() for line in ticks] == ["|", "|"]
    assert sum(line.get_xdata().size for line in ticks) == 90
    few = fit.plot.curves(["p03"], answers=True).lines[1:]
    assert [line.get_marker() for line in few] == ["^", "v"]
