"""DynAEsti against closed forms, brute force, finite differences, simulation and itself."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import multivariate_normal, norm

import dynaesti as dy
from dynaesti import evaluation as evaluate
from dynaesti.data.responses import Responses
from dynaesti.estimation.e_step import EStep
from dynaesti.estimation.likelihood_table import ability_grid, tabulate_items
from dynaesti.estimation.population import estimate_mixing_weights, log_prior_of_weights
from dynaesti.estimation.standard_errors import sample_bank
from dynaesti.model.kernels import RBF
from support.simulated import classroom, parts


def evidence(bank, answers, kernels, z):
    """An E-step with the population's shares at rest: (E-step, rows, what the shares maximise)."""
    rows, flat, starts = tabulate_items(bank, z), np.zeros(len(kernels)), [None] * len(kernels)
    logs = EStep(answers, 1).run(rows, kernels, np.exp(flat), starts, 1e-10).evidence
    share = estimate_mixing_weights(logs, flat)
    total = np.logaddexp.reduce(np.log(share)[:, None] + logs, axis=0).sum() + log_prior_of_weights(
        share, flat
    )
    return EStep(answers, 1).run(rows, kernels, share, starts, 1e-10), rows, total


@pytest.mark.parametrize("model", ["2PL", "3PL", "GRM", "GPCM", "poisson", "gaussian", "beta"])
def test_the_gradient_of_the_m_step_is_that_of_the_evidence(model):
    """Expected counts under the tilted distributions × slopes = finite differences of the (EP)
    evidence, mixture of priors included.
    """
    kind = {"3PL": "2PL", "GPCM": "GRM"}.get(model, model)
    table = classroom(12, 4, 15, model=kind)
    table.loc[::5, "date"] = table.loc[::5, "date"].round(1)  # some answers share an instant
    _, _, bank, answers = parts(table, model)
    kernels = [RBF(0.3), RBF(1.0)]
    z = ability_grid(bank)
    expected, rows, _ = evidence(bank, answers, kernels, z)
    executor = EStep(answers, 1)
    counts = executor.counts(kernels, expected, rows)
    ours = np.concatenate(
        [
            np.einsum("rpg,rg->rp", b.slopes(b_theta), counts[b.first_row : b.end_row])
            .reshape(len(b.items), b.depth, -1)
            .sum(axis=1)
            .ravel()
            for b in bank.blocks
            for b_theta in [bank.ability_scale.theta(z)]
        ]
    )
    x = bank.vector()
    rng = np.random.default_rng(1)
    for _ in range(3):
        d = rng.normal(size=x.size)
        step = 1e-4
        ahead, behind = (
            evidence(bank.at(x + s * step * d), answers, kernels, z)[2] for s in (1, -1)
        )
        assert_allclose((ahead - behind) / (2 * step), ours @ d, rtol=2e-5, atol=2e-4)


def test_static_abilities_are_exact_quadrature():
    table = classroom(20, 6, 12)
    fit = dy.DynAEsti("3PL", bandwidth=np.inf).fit(table)
    r = fit.responses
    u = fit.bank.blocks[0].u
    model = fit.bank.blocks[0].model
    for p in range(4):
        mine = r.person == p

        def posterior(x, k=0, mine=mine):
            chance = np.exp(model.rows(u[r.item[mine]], np.array([x])))[
                np.arange(mine.sum()), r.resp[mine].astype(int), 0
            ]
            return x**k * norm.pdf(x) * chance.prod()

        z = quad(posterior, -9, 9, epsabs=0, epsrel=1e-12, limit=200)[0]
        mean = quad(posterior, -9, 9, args=(1,), epsabs=1e-14 * z, epsrel=1e-12, limit=200)[0] / z
        assert_allclose(fit.person_evidence[p], np.log(z), atol=1e-8)
        assert_allclose(fit.ability([0.5], [r.people[p]])["mean"], mean, atol=1e-7)


def test_gaussian_items_are_closed_form():
    """Evidence and curves of one person equal Gaussian-process regression."""
    table = classroom(15, 4, 20, model="gaussian")
    fit = dy.DynAEsti("gaussian", bandwidth=0.4).fit(table)
    items = fit.items.set_index("item")
    one = table[table.id == "p003"].sort_values("date")
    a, b, sigma = (items.loc[one["item"], name].to_numpy() for name in ("a", "b", "sigma"))
    t, y = one["date"].to_numpy(), one["resp"].to_numpy()
    k = np.exp(-0.5 * ((t[:, None] - t) / 0.4) ** 2)
    cov = a[:, None] * (k + 1e-4 * np.eye(t.size)) * a + np.diag(sigma**2)
    who = fit.ids.index("p003")
    assert_allclose(fit.person_evidence[who], multivariate_normal(-a * b, cov).logpdf(y), atol=1e-5)
    at = np.array([0.2, 0.5, 1.3])
    cross = np.exp(-0.5 * ((at[:, None] - t) / 0.4) ** 2) * a
    mean = cross @ np.linalg.solve(cov, y + a * b)
    var = 1 - np.einsum("ij,ji->i", cross, np.linalg.solve(cov, cross.T))
    found = fit.ability(at, ["p003"])
    assert_allclose(found["mean"], mean, atol=2e-5)
    assert_allclose(found["sd"], np.sqrt(var), rtol=2e-5)


def test_one_person_with_frozen_items_is_a_curvfife_curve():
    table = classroom()
    fit = dy.DynAEsti("2PL", bandwidth=0.4).fit(table)
    items = fit.items.set_index("item")
    one = table[table.id == "p007"]
    a, b = (items.loc[one["item"], name].to_numpy() for name in ("a", "b"))
    curve = dy.CurvFiFE(bandwidth=0.4, refine=False).fit(
        one["date"], dy.ItemResponses(one["resp"], "2PL", a=a, b=b)
    )
    at = [0.1, 0.5, 0.9, 1.5]
    found = fit.ability(at, ["p007"])
    assert_allclose(found["mean"], curve.mean(at), atol=1e-5)
    assert_allclose(found["sd"], curve.sd(at), rtol=1e-5)
    assert_allclose(fit.curve("p007").mean(at), curve.mean(at), atol=1e-5)
    assert_allclose(fit.person_evidence[fit.ids.index("p007")], curve.log_evidence, atol=1e-5)


def test_learned_items_and_abilities_come_back():
    table, real = classroom(300, 15, 40, seed=3, truth=True)
    fit = dy.DynAEsti("2PL").fit(table)
    assert fit.converged
    assert np.corrcoef(fit.items["b"], real["b"])[0, 1] > 0.98
    assert np.corrcoef(np.log(fit.items["a"]), np.log(real["a"]))[0, 1] > 0.8
    grid = np.linspace(0.05, 0.95, 10)
    found = fit.ability(grid)
    theta = np.array([np.interp(grid, real["grid"], row) for row in real["ability"]]).ravel()
    assert np.corrcoef(found["mean"], theta)[0, 1] > 0.75
    inside = (theta > found["lower"]) & (theta < found["upper"])
    assert 0.64 < inside.mean() < 0.76


@pytest.mark.parametrize(
    ("model", "simulated"),
    [
        ("4PL", "2PL"),
        ("1PL", "2PL"),
        ("GRM", "GRM"),
        ("PCM", "GRM"),
        ("GPCM", "GRM"),
        ("RSM", "GRM"),
        ("NRM", "GRM"),
        ("poisson", "poisson"),
        ("beta", "beta"),
        (dy.PivotPartialCredit(descending=False), "GRM"),
    ],
)
def test_every_model_fits_and_orders_the_items(model, simulated):
    table = classroom(150, 8, 30, model=simulated, seed=5)
    fit = dy.DynAEsti(model, bandwidth=0.4).fit(table)
    assert fit.converged
    assert np.isfinite(fit.log_evidence)
    shown = fit.predict(table)
    mean = (
        pd.DataFrame({"item": table["item"], "seen": table["resp"], "said": shown["expected"]})
        .groupby("item")
        .mean()
    )
    assert np.corrcoef(mean["seen"], mean["said"])[0, 1] > 0.9
    errors = [c for c in fit.items.columns if c.startswith("se_")]
    assert errors
    assert (fit.items[errors].to_numpy()[np.isfinite(fit.items[errors])] >= 0).all()


def test_an_own_model_equals_the_built_in_one():
    table = classroom(40, 5, 20)
    own = dy.CustomItemModel(lambda theta, resp, p: -np.logaddexp(0.0, -(2 * resp - 1) * p[0] * (theta - p[1])),
                      {"a": (1.0, 0.0, np.inf), "b": (0.0, -np.inf, np.inf)}, "mine")  # fmt: skip
    mine = dy.DynAEsti(own, bandwidth=0.4, priors=None).fit(table)
    built_in = dy.DynAEsti("2PL", bandwidth=0.4, priors=None).fit(table)
    assert_allclose(mine.log_evidence, built_in.log_evidence, atol=1e-2)
    assert_allclose(mine.items["b"], built_in.items["b"], atol=0.05)


def test_models_can_differ_by_item_and_weights_repeat_answers():
    table = classroom(40, 6, 20)
    kinds = {f"i{k:02d}": "2PL" if k < 3 else "3PL" for k in range(6)}
    fit = dy.DynAEsti(kinds, bandwidth=0.4).fit(table)
    assert fit.items.set_index("item").loc["i00", "model"] == "2PL"
    table["kind"] = table["item"].map(kinds)
    assert_allclose(
        dy.DynAEsti(bandwidth=0.4).fit(table, model="kind").log_evidence,
        fit.log_evidence,
        rtol=1e-9,
    )
    twice = pd.concat([table, table.iloc[:100]])
    weighted = table.assign(w=np.where(np.arange(len(table)) < 100, 2.0, 1.0))
    one, two = (
        dy.DynAEsti(bandwidth=0.4, tolerance=1e-4).fit(twice),
        dy.DynAEsti(bandwidth=0.4, tolerance=1e-4).fit(weighted, weight="w"),
    )
    assert_allclose(one.log_evidence, two.log_evidence, atol=1e-4)
    assert_allclose(one.items["b"], two.items["b"], atol=1e-3)


def test_order_labels_and_threads_do_not_matter(monkeypatch):
    from dynaesti.core import parallel as threads

    monkeypatch.setattr(threads, "CHUNK", 200)
    table = classroom(40, 6, 20)
    one = dy.DynAEsti(threads=1, iterations=12).fit(table)
    two = dy.DynAEsti(threads=3, iterations=12).fit(table)
    assert np.array_equal(one.bank.vector(), two.bank.vector())
    assert np.array_equal(one.ability([0.5])["mean"], two.ability([0.5])["mean"])
    shuffled = table.sample(frac=1, random_state=0)
    shuffled["id"] = shuffled["id"].map(lambda label: hash(label) % 10**9)
    shuffled["item"] = shuffled["item"].map(lambda label: "z" + label[::-1])
    three = dy.DynAEsti(threads=2, iterations=12).fit(shuffled)
    mine, theirs = (
        one.items.set_index("item"),
        three.items.assign(item=lambda f: f["item"].str[1:].str[::-1]).set_index("item"),
    )
    assert_allclose(theirs.loc[mine.index, "b"], mine["b"], atol=1e-6)


def test_updates_equal_scoring_the_whole_person():
    table = classroom(40, 6, 30)
    late = (table["id"] == "p002") & (table["date"] > 0.8)
    fit = dy.DynAEsti(bandwidth=0.4).fit(table[~late])
    grown = fit.update(table[late])
    whole = fit.score(table[table["id"] == "p002"], at=[0.3, 0.9, 1.2])
    assert_allclose(grown.ability([0.3, 0.9, 1.2], ["p002"])["mean"], whole["mean"], atol=1e-6)
    assert_allclose(
        grown.ability([0.3], ["p005"])["mean"], fit.ability([0.3], ["p005"])["mean"], atol=1e-12
    )
    assert len(grown.responses) == len(table)
    assert grown.items.equals(fit.items) or np.allclose(grown.items["b"], fit.items["b"])


def test_what_a_fit_can_tell(tmp_path):
    table = classroom(40, 6, 20)
    fit = dy.DynAEsti(scale="items").fit(table)
    assert_allclose(np.log(fit.items["a"]).mean(), 0.0, atol=1e-9)
    change = fit.change("p001", 0.1, 0.9)
    both = fit.ability([0.1, 0.9], ["p001"])["mean"].to_numpy()
    assert_allclose(change.mean, both[1] - both[0], atol=1e-4)
    assert 0 <= change.rose <= 1
    above = fit.above(0.0, [0.5], ["p001"])
    assert 0 <= above["probability"][0] <= 1
    best = fit.next_item("p001", 0.5, exclude=["i00"], count=3)
    assert "i00" not in list(best["item"])
    assert 0 < fit.reliability() < 1
    assert fit.plausible("p001", [0.1, 0.5], 7).shape == (7, 2)
    filtered = fit.curve("p001", until=0.5)
    assert filtered.sd([1.0])[0] > fit.curve("p001").sd([1.0])[0]
    wide = fit.uncertain("p001", [0.5], draws=40)
    assert wide["sd"][0] > 0.98 * fit.ability([0.5], ["p001"])["sd"][0]
    new = fit.predict([{"id": "nobody", "item": "i00", "date": 0.5}])
    assert_allclose(new["p0"][0] + new["p1"][0], 1.0)
    assert "40 people" in fit.summary()
    path = fit.save(tmp_path / "run.dyn")
    again = dy.load(path)
    assert isinstance(again, dy.Fit)
    assert_allclose(again.ability([0.5])["mean"], fit.ability([0.5])["mean"], rtol=1e-12)
    assert again.items.equals(fit.items)
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(dy.StorageError):
        dy.load(path)


def test_items_drawn_have_the_spread_that_is_told():
    fit = dy.DynAEsti("2PL", bandwidth=0.3).fit(classroom(60, 8, 30))
    rng = np.random.default_rng(0)
    draws = np.array(
        [sample_bank(fit.bank, fit.covariance, fit.shared, rng).blocks[0].u for _ in range(4000)]
    )
    spread = np.einsum(
        "dip,diq->ipq", draws - draws.mean(axis=0), draws - draws.mean(axis=0)
    ) / len(draws)
    scale = np.sqrt(np.einsum("ipp->ip", fit.covariance[0]))
    assert_allclose(
        spread / scale[:, :, None] / scale[:, None, :],
        fit.covariance[0] / scale[:, :, None] / scale[:, None, :],
        atol=0.08,
    )
    middle = draws[:, :, 1].mean(
        axis=1
    )  # where the abilities' zero lies moves all difficulties together
    alone = np.sqrt((scale[:, 1] ** 2).sum()) / len(scale)
    assert middle.std() > 1.3 * alone


def test_items_that_run_backwards():
    table = classroom(80, 10, 30)
    flip = table["item"].isin(["i01", "i04", "i07"])
    table.loc[flip, "resp"] = 1 - table.loc[flip, "resp"]
    fit = dy.DynAEsti(direction="free", bandwidth=0.4).fit(table)
    slopes = fit.items.set_index("item")["a"]
    assert (slopes[["i01", "i04", "i07"]] < 0).all()
    assert (slopes.drop(["i01", "i04", "i07"]) > 0).all()
    turned = dy.DynAEsti(direction="free", bandwidth=0.4, orient={"item": "i01"}).fit(table)
    assert_allclose(turned.items["a"], -fit.items["a"], atol=1e-9)
    assert_allclose(turned.ability([0.5])["mean"], -fit.ability([0.5])["mean"], atol=1e-9)
    assert "run against the rest" in str(dy.DynAEsti(bandwidth=0.4).fit(table).health)


def test_anchors_free_the_population():
    """Items known from elsewhere: the population's mean and spread are found on their scale."""
    rng = np.random.default_rng(2)
    people, items = 400, 12
    a, b = np.ones(items), np.linspace(-2, 2, items)
    theta = 0.7 + 1.5 * rng.standard_normal(people)
    y = rng.uniform(size=(people, items)) < expit(a * (theta[:, None] - b))
    responses = Responses.from_matrices(y * 1.0, np.zeros((1, items)))
    anchors = {k: {"a": 1.0, "b": float(b[k])} for k in range(6)}
    fit = dy.DynAEsti("2PL", bandwidth=np.inf, fixed=anchors).fit(responses)
    assert fit.scale.name == "anchors"
    assert_allclose(fit.shift, 0.7, atol=0.2)
    assert_allclose(fit.gain, 1.5, atol=0.25)
    assert_allclose(fit.items["b"][:6], b[:6], atol=1e-12)
    assert_allclose(fit.items["b"][6:], b[6:], atol=0.4)


@pytest.mark.parametrize("model", ["2PL", "1PL", "3PL", "GRM"])
def test_abilities_counted_anew_leave_every_chance_as_it_was(model):
    bank = parts(classroom(60, 12, 6, model="GRM" if model == "GRM" else "2PL"), model)[2]
    z = np.linspace(-2, 2, 7)
    for location, log_scale in ((0.3, 0.0), (0.0, 0.2), (-0.4, -0.3)):
        assert_allclose(
            bank.rescaled(location, log_scale).rows(z),
            bank.rows(location + np.exp(log_scale) * z),
            rtol=1e-10,
            atol=1e-12,
        )


def test_rasch_learns_the_spread():
    rng = np.random.default_rng(3)
    theta = 1.4 * rng.standard_normal(500)
    b = np.linspace(-2, 2, 15)
    y = rng.uniform(size=(500, 15)) < expit(theta[:, None] - b)
    fit = dy.DynAEsti("Rasch", bandwidth=np.inf, scale="items").fit(
        Responses.from_matrices(y * 1.0, np.zeros((1, 15)))
    )
    assert_allclose(fit.gain, 1.4, atol=0.15)
    assert_allclose(fit.items["a"], 1.0)
    assert_allclose(fit.items["b"], b, atol=0.35)


def test_sparse_items_get_sensible_values():
    table = classroom(60, 80, 8, seed=4)
    fit = dy.DynAEsti().fit(table)
    assert fit.items["a"].between(0.1, 10).all()
    assert fit.items["b"].abs().max() < 8
    assert fit.items["se_b"].median() > 0.3


@pytest.mark.parametrize(("change", "message"), [
    (lambda t: t.rename(columns={"resp": "rsp"}), "no column for resp.*did you mean resp='rsp'"),
    (lambda t: t.assign(resp=t["resp"] + 2), "its model takes 0 and 1 only"),
    (lambda t: t.assign(resp="maybe"), "rows hold text where numbers belong .'maybe' in row 0"),
    (lambda t: t.assign(date=np.nan), "rows have no time"),
    (lambda t: t.assign(id=None), "rows have none"),
    (lambda t: t.iloc[:0], "no rows"),
    (lambda t: t.assign(date=0.0), "everybody answered at one instant"),
])  # fmt: skip
def test_bad_tables_are_refused_in_words(change, message):
    with pytest.raises(dy.InputError, match=message):
        dy.DynAEsti().fit(change(classroom(5, 3, 4)))


def test_bad_options_and_questions_are_refused_in_words():
    for options, message in (
        ({"scale": "z"}, "scale"),
        ({"direction": "up"}, "direction"),
        ({"priors": "flat"}, "priors"),
        ({"kernel": 3}, "kernel"),
        ({"iterations": 0}, "iterations"),
        ({"orient": "x"}, "orient"),
    ):
        with pytest.raises(dy.InputError, match=message):
            dy.DynAEsti(**options)
    with pytest.raises(dy.InputError, match="no item model '9PL'"):
        dy.DynAEsti("9PL").fit(classroom(5, 3, 4))
    fit = dy.DynAEsti(bandwidth=0.5).fit(classroom(10, 3, 8))
    with pytest.raises(dy.InputError, match="never seen, first 'p01'; did you mean 'p001'"):
        fit.ability([0.5], ["p01"])
    with pytest.raises(dy.InputError, match="outside their item's categories"):
        fit.score([{"id": "x", "item": "i00", "resp": 5, "date": 0.1}])
    with pytest.raises(dy.InputError, match="item: 1 of 1 were never seen"):
        fit.predict([{"id": "x", "item": "nope", "date": 0.1}])


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "csv", "parquet", "dicts"])
def test_any_table_goes_in_and_the_same_kind_comes_out(kind, tmp_path):
    import polars as pl
    import pyarrow as pa

    table = classroom(8, 3, 6)
    data = {"pandas": lambda: table, "polars": lambda: pl.from_pandas(table), "pyarrow": lambda: pa.Table.from_pandas(table),
            "csv": lambda: table.to_csv(tmp_path / "t.csv", index=False) or tmp_path / "t.csv",
            "parquet": lambda: table.to_parquet(tmp_path / "t.parquet") or str(tmp_path / "t.parquet"),
            "dicts": lambda: table.to_dict("records")}[kind]()  # fmt: skip
    fit = dy.DynAEsti(bandwidth=0.5).fit(data)
    assert len(fit.responses) == len(table)
    if kind in ("pandas", "polars", "pyarrow"):
        assert type(fit.ability([0.5])).__module__.split(".")[0] == kind
    assert fit.ids == sorted(table["id"].unique())


def test_timestamps_synonyms_and_missing_answers():
    table = classroom(8, 3, 10)
    table["timestamp"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(table["date"] * 100, unit="D")
    odd = table.rename(columns={"id": "student", "item": "problem", "resp": "correct"}).drop(
        columns="date"
    )
    odd.loc[3, "correct"] = np.nan
    fit = dy.DynAEsti(bandwidth=30.0).fit(odd)
    assert fit.responses.dropped == 1
    assert fit.responses.unit == "days"
    assert any("student" in note for note in fit.responses.notes)
    out = fit.ability([pd.Timestamp("2024-02-01")], ["p000"])
    assert out["time"][0] == pd.Timestamp("2024-02-01")
    assert_allclose(fit.ability("2024-02-01", ["p000"])["mean"], out["mean"])
    with pytest.raises(dy.InputError, match="is no time"):
        fit.ability(["soon"], ["p000"])
    own = dy.DynAEsti(bandwidth=30.0, clock="person").fit(odd)
    assert np.isfinite(own.ability([0.0, 50.0], ["p000"])["mean"]).all()
    assert np.isfinite(own.predict(odd)["expected"]).all()


@pytest.mark.parametrize("stop", [2, 4, 6])
def test_an_interrupted_fit_goes_on_to_the_same_answer(tmp_path, stop):
    table = classroom(40, 6, 20)
    path = tmp_path / "fit.ckpt"

    def interrupt(step):
        if step.iteration == stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dy.DynAEsti(checkpoint=path, every=0.0, progress=interrupt).fit(table)
    assert path.exists()
    resumed = dy.DynAEsti(checkpoint=path, every=0.0).fit(table)
    straight = dy.DynAEsti().fit(table)
    assert np.array_equal(resumed.bank.vector(), straight.bank.vector())
    assert len(resumed.trace) == len(straight.trace)
    assert not path.exists()


def test_a_checkpoint_of_other_data_is_refused(tmp_path):
    path = tmp_path / "fit.ckpt"

    def interrupt(step):
        if step.iteration == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dy.DynAEsti(checkpoint=path, every=0.0, progress=interrupt).fit(classroom(40, 6, 20))
    with pytest.raises(dy.StorageError, match="other data or options"):
        dy.DynAEsti(checkpoint=path).fit(classroom(40, 6, 20, seed=1))


def test_amounts_far_from_zero():
    """Measurements near 1000 and counts near e⁵ keep their own zero and unit.

    Their fit statistics are about 1.
    """
    rng = np.random.default_rng(0)
    theta = rng.normal(0, 1, 150)
    table = pd.DataFrame(
        [(i, j, 0.0) for i in range(150) for j in range(8)], columns=["id", "item", "date"]
    )
    table["resp"] = 1000 + 10 * theta[table["id"]] + rng.normal(0, 10, len(table))
    for direction in ("positive", "free"):
        fit = dy.DynAEsti("gaussian", bandwidth=np.inf, direction=direction).fit(table)
        assert fit.converged
        assert_allclose(fit.items[["a", "intercept", "sigma"]].mean(), [10, 1000, 10], rtol=0.15)
        assert 0.9 < evaluate.item_fit(fit)["infit"].mean() < 1.1
    table["resp"] = rng.poisson(np.exp(5 + 0.1 * theta[table["id"]]))
    counts = dy.DynAEsti("poisson", bandwidth=np.inf).fit(table)
    assert_allclose(counts.items["a"].mean(), 0.1, atol=0.02)
    assert 0.9 < evaluate.item_fit(counts)["infit"].mean() < 1.1


def test_scoring_on_each_persons_own_clock():
    table = classroom(40, 6, 20)
    away = dict(zip(table["id"].unique(), np.random.default_rng(1).uniform(0, 50, 40), strict=True))
    table["date"] += table["id"].map(away)
    fit = dy.DynAEsti(bandwidth=0.4, clock="person").fit(table)
    one = table[table["id"] == "p003"]
    assert_allclose(
        fit.score(one, at=[0.5])["mean"], fit.ability([0.5], ["p003"])["mean"], atol=1e-6
    )
    stranger = one.assign(id="new", date=one["date"] + 1000.0)
    first = one["date"].min()
    assert_allclose(fit.score(stranger)["time"].min(), 0.0, atol=1e-9)
    assert first > 0


@pytest.mark.parametrize("people", [1, 2, 4])
def test_few_people_leave_the_items_sensible(people):
    table = classroom(people, 8, 25)
    fit = dy.DynAEsti(bandwidth=0.4).fit(table)
    assert fit.converged
    assert fit.items["a"].between(0.3, 3).all()


def test_the_scale_is_freed_only_by_what_is_fixed():
    table = classroom(40, 6, 20)
    slope = dy.DynAEsti(bandwidth=0.4, fixed={"i03": {"a": 1.0}}).fit(table)
    assert slope.bank.ability_scale.free_scale
    assert not slope.bank.ability_scale.free_location
    assert_allclose(slope.items.set_index("item").loc["i03", "a"], 1.0)
    guess = dy.DynAEsti("3PL", bandwidth=0.4, fixed={"i03": {"c": 0.2}}).fit(table)
    assert guess.scale.name == "abilities"
    assert_allclose(guess.items.set_index("item").loc["i03", "c"], 0.2)


@pytest.mark.parametrize(
    ("model", "fixed"),
    [
        ("2PL", {"i00": {"intercept": 0.4}}),
        ("2PL", {"nope": {"a": 1.0}}),
        ("3PL", {"i00": {"c": 1.5}}),
        ("2PL", {"i00": {"q": 1.0}}),
    ],
)
def test_parameters_that_cannot_be_used_are_refused(model, fixed):
    with pytest.raises(dy.InputError, match=r"item parameters|fixed"):
        dy.DynAEsti(model, bandwidth=0.4, fixed=fixed).fit(classroom(10, 3, 8))


def test_columns_of_ones_own_names_and_labels_of_mixed_types():
    table = classroom(25, 4, 12).rename(
        columns={"id": "kid", "item": "thing", "resp": "ok", "date": "t0"}
    )
    fit = dy.DynAEsti(bandwidth=0.4).fit(table, id="kid", item="thing", resp="ok", time="t0")
    assert "p" not in fit.predict([{"kid": "p000", "thing": "i01", "t0": 0.5, "value": 77}]).columns
    table["kid"] = [int(k[1:]) if int(k[1:]) < 12 else k for k in table["kid"]]
    mixed = dy.DynAEsti(bandwidth=0.4).fit(
        table[table["t0"] < 0.8], id="kid", item="thing", resp="ok", time="t0"
    )
    late = table[(table["t0"] >= 0.8) & table["kid"].isin([2, 10])]
    grown = mixed.update(late)
    whole = mixed.score(table[table["kid"] == 10], at=[0.5])
    assert_allclose(grown.ability([0.5], [10])["mean"], whole["mean"], atol=1e-6)


def test_chances_are_named_by_the_responses():
    table = classroom(40, 4, 20, model="GRM")
    table["resp"] += 1  # 1, 2, 3
    table.loc[table["item"] == "i02", "resp"] = table.loc[table["item"] == "i02", "resp"].clip(
        upper=2
    )
    shown = dy.DynAEsti("GRM", bandwidth=0.4).fit(table).predict(table)
    assert {"p1", "p2", "p3"} < set(shown.columns)
    assert_allclose(np.nansum(shown[["p1", "p2", "p3"]], axis=1), 1.0, rtol=1e-9)
    assert shown.loc[shown["item"] == "i02", "p3"].isna().all()
    given = shown.to_numpy()[
        np.arange(len(shown)), [shown.columns.get_loc(f"p{r:g}") for r in shown["resp"]]
    ]
    assert_allclose(given.astype(float), shown["p"], rtol=1e-12)


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    table, path = classroom(40, 4, 20, model="GRM"), tmp_path / "fit.ckpt"

    def interrupt(step):
        if step.iteration == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dy.DynAEsti("GRM", bandwidth=0.4, checkpoint=path, every=0.0, progress=interrupt).fit(table)
    with pytest.raises(dy.StorageError, match="other data or options"):
        dy.DynAEsti("GPCM", bandwidth=0.4, checkpoint=path).fit(table)


def test_the_common_slope_of_rasch_items_has_an_honest_error():
    """Its spread over simulated data sets is what the standard error says."""
    slopes, errors = [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        theta, b = 1.3 * rng.standard_normal(400), np.linspace(-1, 1, 6)
        y = (rng.random((400, 6)) < 1 / (1 + np.exp(-(theta[:, None] - b)))).astype(float)
        items = (
            dy.DynAEsti("1PL", bandwidth=np.inf, priors=None, threads=1)
            .fit(dy.Responses.from_matrices(y, np.zeros(y.shape)))
            .items
        )
        slopes.append(items["a"][0])
        errors.append(items["se_a"][0])
    assert abs(np.mean(slopes) - 1.3) < 0.06
    assert 0.7 < np.std(slopes) / np.mean(errors) < 1.4


def test_rare_categories_of_a_rating_scale_are_merged_for_all_its_items():
    rng = np.random.default_rng(0)
    table = {
        "id": np.repeat(np.arange(60), 5),
        "item": np.tile(np.arange(5), 60),
        "resp": rng.integers(0, 3, 300),
        "date": rng.uniform(0, 1, 300),
    }
    table["resp"][:2] = 3
    fit = dy.DynAEsti("RSM", rare=10, bandwidth=np.inf).fit(table)
    assert all(block.size == 3 for block in fit.bank.blocks)
    assert len(fit.coding.merged) == 5


def test_a_thin_item_keeps_the_options_that_nobody_chose_yet():
    """Seen by chance only in part, its scale is that of its kin.

    One that many answered has what they gave.
    """
    rng = np.random.default_rng(0)
    item = np.append(np.tile(np.arange(6), 100), [6] * 8)
    resp = np.append(rng.integers(0, 3, 600), [0, 2] * 4)
    resp[item == 5] = rng.choice([0, 2], 100)
    table = {
        "id": np.append(np.repeat(np.arange(100), 6), np.arange(8)),
        "item": item,
        "resp": resp,
        "date": rng.uniform(0, 1, item.size),
    }
    fit = dy.DynAEsti("GRM", bandwidth=np.inf).fit(table)
    assert {int(i): block.size for block in fit.bank.blocks for i in block.items} == {
        **dict.fromkeys(range(5), 3),
        5: 2,
        6: 3,
    }
    chances = fit.predict({"id": [0], "item": [6], "date": [0.5]})
    assert 0.01 < chances["p1"][0] < 0.5
    with pytest.warns(dy.ConvergenceWarning):
        bare = dy.DynAEsti("GRM", bandwidth=np.inf, priors=None, iterations=1).fit(table)
    assert {int(i): block.size for block in bare.bank.blocks for i in block.items}[
        6
    ] == 2  # likelihood alone could not place them


def test_a_short_item_among_long_ones_keeps_its_own_scale():
    """Thirty right-or-wrong items beside six of five points, all graded.

    Nobody gave them a 4 because there is none.
    """
    rng = np.random.default_rng(1)
    long, short = np.repeat(np.arange(6), 60), np.repeat(np.arange(6, 36), 12)
    table = {
        "id": np.append(
            np.tile(np.arange(60), 6),
            np.concatenate([rng.choice(60, 12, replace=False) for _ in range(30)]),
        ),
        "item": np.append(long, short),
        "resp": np.append(rng.integers(0, 5, long.size), rng.integers(0, 2, short.size)),
        "date": rng.uniform(0, 1, long.size + short.size),
    }
    fit = dy.DynAEsti("GRM", bandwidth=np.inf).fit(table)
    assert {int(i): block.size for block in fit.bank.blocks for i in block.items} == {
        k: 5 if k < 6 else 2 for k in range(36)
    }


@pytest.mark.parametrize("model", ["2PL", "GRM", "NRM"])
def test_turned_items_take_their_learned_priors_along(model):
    table = classroom(40, 25, 12)
    bank = (
        dy.DynAEsti(model, direction="free", priors="hierarchical", bandwidth=np.inf, iterations=60)
        .fit(table)
        .bank
    )
    assert abs(bank.blocks[0].prior_mean[0]) > 0.1
    assert bank.reflected().log_prior() == pytest.approx(bank.log_prior())
    for back, block in zip(bank.reflected().reflected().blocks, bank.blocks, strict=True):
        assert_allclose(back.u, block.u)
        assert_allclose(back.prior_mean, block.prior_mean)
