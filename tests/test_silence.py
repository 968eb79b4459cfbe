"""Nothing wrong in silence: what once came out wrong, lost or doubled without a word, each kind with a test that failed then."""

import io
import json
import os
import stat
import subprocess
import sys
import threading
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.special import expit
from scipy.stats import nbinom, poisson

import dynaesti as dy
from dynaesti.commands.main import main
from dynaesti.links import BUILT_IN, Points
from dynaesti.simulate import answers
from simulated import classroom

TIMES = np.arange(12.0)
LONG = 1712345678901234000


@pytest.fixture(scope="module")
def drawn():
    return answers(people=200, items=20, per_person=20, seed=3)


@pytest.fixture(scope="module")
def small():
    return pd.DataFrame(answers(people=20, items=6, per_person=15, seed=1).table)


def told(task, kind=dy.HealthWarning):
    """The warnings of a kind that a task raises, in one text, and its result."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        result = task()
    return " ".join(str(w.message) for w in seen if issubclass(w.category, kind)), result


def spoken(capsys, *words):
    code = main([str(word) for word in words])
    out = capsys.readouterr()
    return code, out.out, out.err


# --- ids ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [
    lambda t: t, pl.from_pandas, pa.Table.from_pandas,
])
def test_long_ids_are_told_apart_beside_a_blank_one(small, make):
    numbers = LONG + np.unique(small["id"], return_inverse=True)[1]
    table = small.assign(id=numbers.astype(object))
    table.loc[len(table)] = [None, None, None, None]
    found = dy.Responses.read(make(table.astype({"id": "Int64"})), unreadable="drop")
    assert found.people.tolist() == sorted(set(numbers.tolist()))


def test_a_blank_last_line_merges_nobody(tmp_path, capsys):
    (tmp_path / "s.csv").write_text(f"user_id,item,resp,date\n{LONG + 1},q1,1,1\n{LONG + 2},q1,0,2\n,,,\n")
    assert "2 answers of 2 people" in spoken(capsys, "validate", tmp_path / "s.csv")[1]


def test_ids_that_floats_have_rounded_are_refused(small):
    with pytest.raises(dy.ResponseError, match="cannot be told apart"):
        dy.Responses.read(small.assign(id=float(LONG) + 256.0 * np.unique(small["id"], return_inverse=True)[1]))


def test_unsigned_ids_beyond_the_signed_ones_survive_shards(small, tmp_path):
    ids = np.array([2**63 + 5 + k % 3 for k in range(len(small))], dtype=np.uint64)
    shards = dy.prepare(small.assign(id=ids), tmp_path / "shards")
    assert sorted(map(int, shards.responses(0).people.tolist())) == [2**63 + 5, 2**63 + 6, 2**63 + 7]
    assert dy.Responses.read(small.assign(id=ids)).people.tolist() == [2**63 + 5, 2**63 + 6, 2**63 + 7]


@pytest.mark.parametrize(("first", "then"), [(str, float), (int, float), (float, str), (str, int)])
def test_one_person_however_their_number_is_written(small, first, then):
    numbers = np.unique(small["id"], return_inverse=True)[1] + 1
    fit = dy.DynAEsti(standard_errors=False).fit(small.assign(id=[first(n) for n in numbers]))
    more = small.assign(id=[then(n) for n in numbers], date=small["date"] + 200).head(30)
    if {first, then} == {float, str}:  # text such as "1.0" is a name of its own; 1.0 is 1
        more = more.assign(id=[str(n) for n in numbers[:30]] if then is str else numbers[:30].astype(float))
    assert fit.update(more).responses.people.size == 20


def test_strangers_who_are_called_nearly_alike_are_named(small):
    fit = dy.DynAEsti(standard_errors=False).fit(small)
    more = small.head(30).assign(id=small["id"].head(30) + " ", date=small["date"].head(30) + 200)
    words, grown = told(lambda: fit.update(more))
    assert "called nearly as known ones" in words
    assert any("2 of them new" in note for note in grown.responses.notes)
    composed, apart = "Jos\u00e9", "Jose\u0301"
    fit = dy.DynAEsti(standard_errors=False).fit(small.replace({"id": {small["id"][0]: composed}}))
    assert "called nearly" in told(lambda: fit.predict(small.head(2).assign(id=[apart, composed])))[0]


def test_torn_characters_are_refused_at_the_door(small):
    table = small.assign(id=pd.Series([name if k else "\udc80x" for k, name in enumerate(small["id"])], dtype=object))
    with pytest.raises(dy.ResponseError, match="cannot be written down"):
        dy.Responses.read(table)
    with pytest.raises(dy.DynaestiError):
        dy.Responses.read({name: list(table[name]) for name in table})


def test_two_rows_of_a_matrix_are_not_one_person():
    with pytest.raises(dy.ResponseError, match="several rows"):
        dy.Responses.from_matrices(np.eye(2), np.eye(2), people=["a", "a"])


# --- updates ----------------------------------------------------------------------------------------------------


def test_an_update_knows_its_own_data_again(small, tmp_path, capsys):
    small.to_csv(tmp_path / "a.csv", index=False)
    more = small.head(40).assign(date=lambda t: t["date"] + 200)
    more.sample(frac=1, random_state=1).to_csv(tmp_path / "b.csv", index=False)
    more.to_parquet(tmp_path / "b.parquet")  # the same answers in another order and kind of file
    spoken(capsys, "fit", tmp_path / "a.csv", "--out", tmp_path / "run", "--quiet", "--no-report", "--no-static")
    assert spoken(capsys, "update", tmp_path / "run", tmp_path / "b.csv")[0] == 0
    code, out, err = spoken(capsys, "update", tmp_path / "run", tmp_path / "b.parquet")
    assert code == 0
    assert "Added 0 answers" in out
    assert "were added by an earlier update" in err
    assert len(dy.load(tmp_path / "run").responses) == 340
    assert spoken(capsys, "update", tmp_path / "run", tmp_path / "b.csv", "--again")[0] == 0
    assert len(dy.load(tmp_path / "run").responses) == 380
    fit = dy.DynAEsti(standard_errors=False).fit(small)
    once = fit.update(more)
    words, twice = told(lambda: once.update(more.iloc[::-1]))
    assert "earlier update" in words
    assert twice is once
    assert len(once.update(more, again=True).responses) == 380


def test_shards_know_their_updates_again(small, tmp_path):
    fit = dy.DynAEsti(standard_errors=False).fit(dy.prepare(small, tmp_path / "shards", shards=3), out=tmp_path / "run")
    more = small.head(40).assign(date=lambda t: t["date"] + 200)
    once = fit.update(more)
    assert once.shards.rows == 340
    assert told(lambda: once.update(more))[1].shards.rows == 340
    assert dy.load(tmp_path / "run").update(more, again=True).shards.rows == 380
    with pytest.raises(dy.StorageError, match="changed since"):
        once.update(more.assign(date=lambda t: t["date"] + 1))


def test_two_updates_at_once_are_both_in(small, tmp_path, capsys):
    small.to_csv(tmp_path / "a.csv", index=False)
    spoken(capsys, "fit", tmp_path / "a.csv", "--out", tmp_path / "run", "--quiet", "--no-report", "--no-static")
    for k in (1, 2):
        small.head(30).assign(date=lambda t, k=k: t["date"] + 200 * k).to_csv(tmp_path / f"u{k}.csv", index=False)
    jobs = [subprocess.Popen([sys.executable, "-m", "dynaesti", "update", tmp_path / "run", tmp_path / f"u{k}.csv"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for k in (1, 2)]
    assert [job.wait(120) for job in jobs] == [0, 0]
    assert len(dy.load(tmp_path / "run").responses) == 360


def test_a_folder_belongs_to_one_command(small, tmp_path, capsys):
    from dynaesti.locks import only_one

    small.to_csv(tmp_path / "a.csv", index=False)
    entered, leave = threading.Event(), threading.Event()

    def holder():
        with only_one(tmp_path / "run" / ".lock", "run"), only_one(tmp_path / ".shards.lock", "shards"):
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=holder)
    thread.start()
    entered.wait(60)
    try:
        code, _, err = spoken(capsys, "fit", tmp_path / "a.csv", "--out", tmp_path / "run")
        assert code == 4
        assert "another command is at work" in err
        with pytest.raises(dy.StorageError, match="another command"):
            dy.prepare(small, tmp_path / "shards")
    finally:
        leave.set()
        thread.join()
    assert spoken(capsys, "fit", tmp_path / "a.csv", "--out", tmp_path / "run", "--quiet", "--no-report", "--no-static")[0] == 0


def test_a_run_changes_at_once_or_not_at_all(small, tmp_path, capsys, monkeypatch):
    """A disk that is full when the tables are written leaves the fit as it was, too."""
    small.to_csv(tmp_path / "a.csv", index=False)
    small.head(30).assign(date=lambda t: t["date"] + 200).to_csv(tmp_path / "u.csv", index=False)
    spoken(capsys, "fit", tmp_path / "a.csv", "--out", tmp_path / "run", "--quiet", "--no-report", "--no-static")
    from dynaesti.commands import fit as verb

    real = verb.write_table

    def full(frame, file, parquet):
        if "abilities" in file.name:
            raise OSError(28, "No space left on device")
        real(frame, file, parquet)

    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    with monkeypatch.context() as broken:
        broken.setattr(verb, "write_table", full)
        code, _, err = spoken(capsys, "update", tmp_path / "run", tmp_path / "u.csv")
    assert code == 4
    assert "as it was" in err
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before
    assert spoken(capsys, "update", tmp_path / "run", tmp_path / "u.csv")[0] == 0
    assert len(dy.load(tmp_path / "run").responses) == 330


# --- plausible values -------------------------------------------------------------------------------------------


def test_plausible_values_of_people_are_independent(drawn):
    fit = dy.DynAEsti(standard_errors=False).fit(drawn.table)
    draws = np.array([fit.plausible(label, [50.0], 300, seed=5)[:, 0] for label in fit.ids[:60]])
    apart = np.corrcoef(draws)[np.triu_indices(60, 1)]
    assert np.abs(apart).mean() < 0.08  # 1/√300 and a little
    sds = fit.ability([50.0], fit.ids[:60])["sd"].to_numpy()
    assert draws.mean(axis=0).std() == pytest.approx(np.sqrt((sds**2).sum()) / 60, rel=0.2)  # of a cohort's mean
    assert np.array_equal(fit.plausible(fit.ids[3], [50.0], 5, seed=1), fit.plausible(fit.ids[3], [50.0], 5, seed=1))


# --- anchors ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["fixed", "start"])
def test_anchors_are_known_by_their_written_form(small, option):
    table = small.assign(item=[int(name[1]) for name in small["item"]])
    given = [{key: {"a": 2.0, "b": 1.0}} for key in (0, "0", 0.0)]
    given.append(pd.DataFrame({"item": ["0"], "a": [2.0], "b": [1.0]}))
    found = [dy.DynAEsti(**{option: one}, iterations=3, standard_errors=False).fit(table).items for one in given]
    for other in found[1:]:
        pd.testing.assert_frame_equal(found[0], other)
    if option == "fixed":
        assert found[0].loc[0, ["a", "b"]].tolist() == [2.0, 1.0]


@pytest.mark.parametrize(("zero", "unit", "held"), [(500.0, 100.0, 10), (500.0, 100.0, 20), (50.0, 10.0, 3), (-3e4, 0.01, 10)])
def test_anchors_on_a_reporting_scale_give_the_same_fit(drawn, zero, unit, held):
    items = pd.DataFrame(drawn.items)[["item", "a", "b"]]
    plain = dy.DynAEsti(fixed=items.head(held), standard_errors=False).fit(drawn.table)
    told = items.assign(a=items["a"] / unit, b=zero + unit * items["b"]).head(held)
    scaled = dy.DynAEsti(fixed=told, standard_errors=False).fit(drawn.table)
    assert scaled.scale.name == "anchors"
    assert scaled.log_evidence == pytest.approx(plain.log_evidence, abs=0.2)
    assert np.abs((scaled.ability()["mean"] - zero) / unit - plain.ability()["mean"]).max() < 0.03


def test_given_parameters_stay_as_they_are(small):
    assert dy.DynAEsti(fixed={"i0": {"a": 1.0, "b": 35.0}}).fit(small).items.loc[0, ["a", "b"]].tolist() == [1.0, 35.0]
    bare = dy.DynAEsti("3PL", fixed={"i0": {"a": 1.0, "b": 0.0, "c": 0.0}}).fit(small).items.loc[0]
    assert bare["c"] < 1e-8
    twice = pd.DataFrame({"item": ["i0", "i0"], "a": [1, 2], "b": [0, 0]})
    for bad in ({"i0": {"a": "x"}}, {"i0": {"a": None}}, {"i0": {"a": np.nan}}, twice,
                {"i0": {"a": 1e6, "b": 0.0}, "i1": {"a": 1e-3, "b": 0.0}}):
        with pytest.raises(dy.InputError):
            dy.DynAEsti(fixed=bad).fit(small)


def test_one_person_with_a_known_bank_has_a_band(drawn):
    table, items = pd.DataFrame(drawn.table), pd.DataFrame(drawn.items)[["item", "a", "b"]]
    one = table[table["id"] == table["id"][0]]
    bank = items[items["item"].isin(one["item"])]
    assert dy.DynAEsti(fixed=bank).fit(one).ability()["sd"].min() > 0.2
    stated = dy.DynAEsti(fixed=bank, population=(0.0, 1.0)).fit(one)
    assert (stated.shift, stated.gain) == pytest.approx((0.0, 1.0))
    # items and population known: nothing is learned, so others do not matter
    whole = dy.DynAEsti(fixed=items, population=(0.0, 1.0), kernel=stated.kernels[0]).fit(table)
    alone = dy.DynAEsti(fixed=bank, population=(0.0, 1.0), kernel=stated.kernels[0]).fit(one)
    np.testing.assert_allclose(alone.ability()["mean"], whole.ability(ids=[one["id"].iloc[0]])["mean"], atol=1e-5)
    with pytest.raises(dy.InputError, match="anchored items"):
        dy.DynAEsti(population=(0.0, 1.0)).fit(table)


# --- curves beyond their prior ------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [8.0, 9.0, 12.0, 20.0, 100.0])
def test_curves_far_from_their_prior_are_exact(at):
    """Of a constant under a standard normal prior, with Gaussian factors: known in closed form."""
    factors = [lambda y: -0.5 * (y - at) ** 2] * 12
    grid = np.linspace(-130, 130, 2601)
    exact, evidence = at * 12 / 13, -0.5 * np.log(13) - 0.5 * at**2 * 12 / 13
    for emissions in (factors, dy.Table(grid, np.tile(-0.5 * (grid - at) ** 2, (12, 1)))):
        curve = dy.CurvFiFE(bandwidth=np.inf).fit(TIMES, emissions)
        assert curve.mean([5.0])[0] == pytest.approx(exact, rel=1e-6)
        assert curve.log_evidence == pytest.approx(evidence, rel=1e-6)
    assert dy.CurvFiFE(bandwidth=np.inf).fit_many([0] * 12, TIMES, factors).mean([5.0])[0, 0] == pytest.approx(exact, rel=1e-6)
    audit = dy.CurvFiFE().fit(TIMES, factors).audit()
    assert audit.mean([5.0])[0] == pytest.approx(exact, abs=0.02)


@pytest.mark.parametrize("mean", [-15.0, 10.0, 15.0])
def test_a_prior_mean_far_from_the_votes_keeps_their_sign(mean):
    votes = np.array([1, 1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1.0])
    curve = dy.CurvFiFE(bandwidth=np.inf, mean=mean).fit(TIMES, dy.Bernoulli(votes))
    x = np.linspace(-20, 20, 400_001)
    from scipy.special import log_ndtr

    log = votes.sum() * log_ndtr(x) + (12 - votes.sum()) * log_ndtr(-x) - 0.5 * (x - mean) ** 2
    p = np.exp(log - log.max())
    assert curve.latent.mean([5.0])[0] == pytest.approx(float(p @ x / p.sum()), abs=1e-4)
    assert curve.log_evidence < 0


def test_a_curve_beyond_a_table_is_refused():
    grid = np.linspace(-5, 5, 50)
    with pytest.raises(dy.EmissionError, match="beyond the table's grid"):
        dy.CurvFiFE().fit(TIMES, dy.Table(grid, np.tile(-0.5 * (grid - 20) ** 2, (12, 1))))


def test_tables_keep_no_splines_of_another_link():
    grid = np.linspace(0.5, 6.0, 60)
    table = dy.Table(grid, np.tile(-0.5 * ((grid - 2.5) / 0.3) ** 2, (12, 1)))
    links = [(lambda x: np.exp(0.5 * x), lambda y: 2 * np.log(y)), (lambda x: np.exp(0.25 * x + 1), lambda y: 4 * (np.log(y) - 1))]
    for link in links:
        alone = dy.Table(grid, table.log_lik)
        again, fresh = (dy.CurvFiFE(bandwidth=3.0, link=link).fit(TIMES, one).median([5.0])[0] for one in (table, alone))
        assert again == pytest.approx(fresh, rel=1e-12)


@pytest.mark.parametrize("size", [0.3, 5.0, 1e3, 1e6, 1e10, 1e14, 1e16, 1e300])
def test_negative_binomials_keep_their_digits(size):
    counts, x = np.array([0.0, 1, 3, 8, 40]), np.linspace(-2, 3, 7)
    got = dy.NegativeBinomial(counts, size).log_prob(Points(np.tile(x, (5, 1)), BUILT_IN["log"]), np.arange(5))
    wanted = poisson.logpmf(counts[:, None], np.exp(x)) if size > 1e7 else nbinom.logpmf(counts[:, None], size, size / (size + np.exp(x)))
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6)


def test_rates_of_nothing_have_moments_that_the_data_allow():
    curve = dy.CurvFiFE().fit(TIMES, dy.Poisson([0] * 12))
    assert 0.05 < curve.mean([5.0])[0] < 0.25
    assert 0.03 < curve.sd([5.0])[0] < 0.3
    many = dy.CurvFiFE().fit_many([0] * 12 + [1] * 12, np.tile(TIMES, 2), dy.Poisson([0] * 12 + [3, 5, 2, 6, 4, 2, 5, 1, 4, 7, 2, 3]))
    assert many.sd([5.0])[0, 0] < 1.0


# --- own models, separation, units ----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [
    lambda th, r, p: np.where(th < 0, -np.inf, -np.logaddexp(0, -(th - p[0]) * (1 if r else -1))),
    lambda th, r, p: np.full_like(th, -np.inf),
    lambda th, r, p: np.where((th > p[0]) == (r == 1), np.log(0.99), np.log(0.01)),
    lambda th, r, p: np.where((th > p[0]) == (r == 1), np.log(0.6), np.log(0.4)),
])
def test_own_models_that_cannot_be_learned_from_are_refused(small, model):
    began = time.perf_counter()
    with pytest.raises(dy.InputError, match="item model"):
        dy.DynAEsti(dy.OwnModel(model, {"b": (0.0, -5.0, 5.0)})).fit(small)
    assert time.perf_counter() - began < 20


def test_own_models_that_only_round_to_nothing_are_fine(small):
    def naive(theta, resp, p):
        with np.errstate(divide="ignore", over="ignore"):
            right = 1 / (1 + np.exp(-(theta - p[0])))
            return np.log(right) if resp else np.log(1 - right)

    careful = dy.OwnModel(lambda th, r, p: -np.logaddexp(0, -(th - p[0]) * (1 if r else -1)), {"b": (0.0, -5.0, 5.0)})
    fits = [dy.DynAEsti(model, bandwidth=np.inf, standard_errors=False).fit(small) for model in
            (dy.OwnModel(naive, {"b": (0.0, -5.0, 5.0)}), careful)]
    assert fits[0].log_evidence == pytest.approx(fits[1].log_evidence, abs=1e-6)
    for params in ({"b": 0.0}, {"b": ("a", "b", "c")}, {"b": (0.0, 1.0)}):
        with pytest.raises(dy.InputError, match="needs"):
            dy.OwnModel(naive, params)


def test_separated_items_without_priors_are_named_and_nothing_explodes(small):
    for resp in ((small["item"] < "i3") * 1.0, np.where(small["item"] == "i0", 1.0, small["resp"])):
        words, fit = told(lambda resp=resp: dy.DynAEsti(priors=None).fit(small.assign(resp=resp)))
        assert "no finite estimate" in words
        assert "no finite estimate" in fit.summary()
        assert fit.log_evidence <= 0
        assert np.isinf(fit.items["se_b"]).any()


@pytest.mark.parametrize(("unit", "zero"), [(1e-9, 0.0), (1e9, 0.0), (1.0, 1e6), (1.0, 1e9), (-3.0, 7.0)])
def test_measurements_do_not_depend_on_their_unit(unit, zero):
    table = classroom(40, 6, 20, seed=2, model="gaussian")
    plain = dy.DynAEsti("gaussian").fit(table)
    scaled = dy.DynAEsti("gaussian").fit(table.assign(resp=table["resp"] * unit + zero))
    sign = np.sign(unit)
    assert np.abs(sign * scaled.ability()["mean"] - plain.ability()["mean"]).max() < 1e-5
    assert scaled.log_evidence + len(table) * np.log(abs(unit)) == pytest.approx(plain.log_evidence, abs=1e-3)
    np.testing.assert_allclose(scaled.items["sigma"], abs(unit) * plain.items["sigma"], rtol=1e-5)
    np.testing.assert_allclose(scaled.predict(table.assign(resp=table["resp"] * unit + zero))["expected"],
                               unit * plain.predict(table)["expected"] + zero, rtol=1e-5)
    anchors = scaled.items.head(2)[["item", "a", "b", "sigma"]]
    held = dy.DynAEsti("gaussian", fixed=anchors).fit(table.assign(resp=table["resp"] * unit + zero))
    np.testing.assert_allclose(held.items[["a", "b", "sigma"]].head(2), scaled.items[["a", "b", "sigma"]].head(2), rtol=1e-6)


def test_shards_of_measurements_are_refreshed_in_their_own_unit(tmp_path):
    table = classroom(40, 6, 20, seed=2, model="gaussian").assign(resp=lambda t: 1000 + 50 * t["resp"])
    early = table["date"] < 0.8
    fit = dy.DynAEsti("gaussian").fit(dy.prepare(table[early], tmp_path / "s", shards=2), out=tmp_path / "r").update(table[~early])
    found = dy.refresh(fit).items
    whole = dy.DynAEsti("gaussian").fit(table).items
    np.testing.assert_allclose(found["sigma"], whole["sigma"], rtol=0.02)
    np.testing.assert_allclose(found["intercept"], whole["intercept"], rtol=0.02)


# --- dates and text -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stamp", ["9999-12-31", "0001-01-01", "1600-01-01", "2300-01-01", "9999-12-31T23:59:59-05:00"])
def test_dates_that_no_clock_can_tell_are_refused_not_wrapped(small, stamp):
    dates = [f"2024-01-{k % 28 + 1:02d}{'T10:00:00+01:00' if 'T' in stamp else ''}" for k in range(len(small))]
    dates[5] = stamp
    table = small.assign(date=dates)
    with pytest.raises(dy.ResponseError, match="outside the years"):
        dy.Responses.read(table)
    found = dy.Responses.read(table, unreadable="drop")
    assert len(found) == len(small) - 1
    assert str(found.axis.restore(np.zeros(1))[0]).startswith("2024-01-01")


@pytest.mark.parametrize(("number", "called"), [
    (lambda t: t.year * 100 + t.month, "YYYYMM"), (lambda t: t.year * 10000 + t.month * 100 + t.day, "YYYYMMDD"),
    (lambda t: int(t.strftime("%Y%m%d%H%M%S")), "YYYYMMDDHHMMSS"), (lambda t: t.timestamp(), "seconds"),
    (lambda t: t.timestamp() * 1e3, "milliseconds"), (lambda t: t.timestamp() * 1e6, "microseconds"),
    (lambda t: t.timestamp() * 1e9, "nanoseconds"),
])
def test_numbers_that_are_dates_are_read_as_such_and_told(small, number, called):
    stamps = pd.date_range("2023-11-03", periods=len(small), freq="3D", tz="UTC")
    found = dy.Responses.read(small.assign(date=[number(t) for t in stamps]))
    assert found.unit == "days"
    assert any(called in note for note in found.notes)
    wanted = np.array([t.replace(day=1) if called == "YYYYMM" else t for t in stamps.tz_localize(None)], dtype="datetime64[ns]")
    assert np.abs((np.sort(found.axis.restore(found.offsets)) - np.sort(wanted)).astype(float)).max() < 2e3


def test_mixed_clocks_and_odd_hours_are_told(small):
    seconds = 1.7e9 + 1e4 * small["date"]
    with pytest.raises(dy.ResponseError, match="make them alike"):
        dy.Responses.read(small.assign(date=np.where(small.index % 2, seconds, seconds * 1e3)))
    with pytest.raises(dy.ResponseError, match="did you mean"):
        dy.Responses.read(small.assign(date=seconds * 1e9), unit="unix")
    dates = ["2024-03-31 02:30:00" if k % 2 else "2024-10-27 02:30:00" for k in range(len(small))]
    notes = " ".join(dy.Responses.read(small.assign(date=dates), timezone="Europe/Zurich").notes)
    assert "do not exist in Europe/Zurich" in notes
    assert "occur twice" in notes


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_times_beyond_computing_are_refused_at_once(small, scale):
    with pytest.raises(dy.InputError, match="unit"):
        dy.DynAEsti().fit(small.assign(date=small["date"] * scale))


def test_nobody_at_two_instants_is_told_as_such(small):
    alone = small.groupby("id").head(1)
    with pytest.raises(dy.InputError, match="nobody answered at more than one instant"):
        dy.DynAEsti().fit(alone)


@pytest.mark.parametrize("strays", [[500], [300, 700], [10, 11, 500]])
def test_a_stray_quote_costs_its_own_line_only(tmp_path, capsys, strays):
    rows = [f"p{k % 9},i{k % 4},{k % 2},{k}" for k in range(1000)]
    for k in strays:
        rows[k] = '"' + rows[k]
    (tmp_path / "q.csv").write_text("id,item,resp,date\n" + "\n".join(rows) + "\n")
    code, _, err = spoken(capsys, "validate", tmp_path / "q.csv")
    assert code == 3
    assert f"line {strays[0] + 2}" in err
    _, out, err = spoken(capsys, "validate", tmp_path / "q.csv", "--drop-unreadable")
    assert f"{1000 - len(strays)} answers" in out
    assert f"left out: {len(strays)} line" in err


def test_names_may_hold_quotes_commas_and_line_ends(tmp_path):
    rows = [f'"Smith, {k % 3}\nthe ""younger""",i{k % 4},{k % 2},{k}' for k in range(30)]
    (tmp_path / "q.csv").write_text("id,item,resp,date\n" + "\n".join(rows) + "\n")
    found = dy.Responses.read(tmp_path / "q.csv")
    assert len(found) == 30
    assert found.people.tolist() == [f'Smith, {k}\nthe "younger"' for k in range(3)]


def test_one_byte_of_another_encoding_costs_nobody_their_name(tmp_path):
    rows = [f"José {k % 5},i{k % 4},{k % 2},{k}" for k in range(100_000)]
    text = ("id,item,resp,date\n" + "\n".join(rows) + "\n").encode()
    broken = text + "Zoë,i0,1,5\n".encode("cp1252") + b"Ren\xe9e,i1,0,6\n"
    (tmp_path / "a.csv").write_bytes(broken)
    found = dy.Responses.read(tmp_path / "a.csv")
    assert sorted(found.people) == ["José 0", "José 1", "José 2", "José 3", "José 4", "Renée", "Zoë"]
    assert any("2 bytes are not UTF-8" in note for note in found.notes)
    shards = dy.prepare(tmp_path / "a.csv", tmp_path / "s")
    assert shards.people == 7


@pytest.mark.parametrize(("heading", "end"), [("id,item,resp,date", ","), ("id,item,resp,date,", ","), ("id;item;resp;date", ""),
                                              ("id;item;resp;date", ";"), ("id\titem\tresp\tdate", "")])
def test_delimiters_at_line_ends_and_ragged_first_lines(tmp_path, heading, end):
    mark = next(sign for sign in ",;\t" if sign in heading)
    rows = [mark.join((f"p{k % 5}", f"i{k % 3}", str(k % 2), str(k))) for k in range(40)]
    (tmp_path / "a.csv").write_text(heading + "\n" + "".join(f"{row}{end}\n" for row in rows))
    assert len(dy.Responses.read(tmp_path / "a.csv")) == 40


def test_points_beside_decimal_commas_are_not_guessed(tmp_path):
    (tmp_path / "a.csv").write_text("id;item;resp;date\na;i;1;1,5\na;i;0;1.000\nb;i;1;2\n")
    with pytest.raises(dy.ResponseError, match=r"1\.000"):
        dy.Responses.read(tmp_path / "a.csv")


def test_rows_of_dicts_mix_whole_numbers_and_others():
    values = ((1, 1, 1, 1), (1, 1, 0, 1.5), (2, 1, None, 2))
    rows = [dict(zip(("id", "item", "resp", "date"), row, strict=True)) for row in values]
    found = dy.Responses.read(rows)
    assert found.axis.restore(found.offsets).tolist() == [1.0, 1.5]
    assert dy.Responses.read([row | {"id": 2**70 + row["id"]} for row in rows]).people.tolist() == [str(2**70 + 1)]


def test_pipes_are_read_as_files(small, tmp_path):
    small.to_csv(tmp_path / "a.csv", index=False)
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes((tmp_path / "a.csv").read_bytes()))
    writer.start()
    assert len(dy.Responses.read(tmp_path / "pipe")) == len(small)
    writer.join()


def test_a_hundred_thousand_columns_make_a_short_message(tmp_path):
    (tmp_path / "a.csv").write_text(",".join(f"c{k}\x1b[31m" for k in range(100_000)) + "\n" + ",".join("1" * 100_000) + "\n")
    with pytest.raises(dy.ResponseError) as error:
        dy.Responses.read(tmp_path / "a.csv")
    assert len(str(error.value)) < 2000
    assert "\x1b" not in str(error.value)


# --- checkpoints ----------------------------------------------------------------------------------------------------


def test_checkpoints_know_anchors_and_functions(small, tmp_path):
    from dynaesti.checkpoints import in_full

    one = pd.DataFrame({"item": [f"i{k}" for k in range(100)], "a": 1.0, "b": np.arange(100.0)})
    other = one.assign(b=np.where(np.arange(100) == 50, 0.1, one["b"]))
    prints = [dy.DynAEsti(fixed=table)._choices()["fixed"] for table in (one, one.copy(), other)]
    assert prints[0] == prints[1] != prints[2]

    def model(shift):
        return dy.OwnModel(lambda th, r, p: -np.logaddexp(0, -(th - p[0] - shift) * (1 if r else -1)), {"b": (0.0, -5.0, 5.0)})

    assert in_full(model(0.0)) == in_full(model(0.0)) != in_full(model(1.0))
    code = ("import sys; sys.path[:0] = [sys.argv[1]]; import dynaesti as dy, numpy as np; from dynaesti.checkpoints import in_full\n"
            "print(in_full(dy.OwnModel(lambda th, r, p: -np.logaddexp(0, -(th - p[0])), {'b': (0.0, -5.0, 5.0)})))")
    runs = {subprocess.run([sys.executable, "-c", code, "."], capture_output=True, text=True, check=True).stdout for _ in range(2)}
    assert len(runs) == 1


# --- what answers cannot tell -----------------------------------------------------------------------------------------


def cohort(people=100, items=10, each=20, seed=0, slope=None, rise=0.0, chosen=None):
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(people), each)
    t = rng.uniform(0, 100, person.size)
    item = rng.integers(0, items, person.size) if chosen is None else chosen(person, t, rng)
    a, b = np.ones(items) if slope is None else slope, rng.normal(size=items)
    theta = rng.normal(size=people)[person] + rise * (t / 100 - 0.5)
    right = rng.uniform(size=person.size) < expit(a[item] * (theta - b[item]))
    return pd.DataFrame({"id": person, "item": item, "resp": right * 1.0, "date": t})


@pytest.mark.parametrize(("table", "words"), [
    (lambda: cohort(chosen=lambda p, t, rng: rng.integers(0, 5, p.size) + 5 * (p >= 50)), "groups without a link"),
    (lambda: cohort(people=200, slope=np.where(np.arange(10) % 2, 1.5, -1.5)), "5 items of 10 run against the rest"),
    (lambda: cohort(people=200, slope=np.where(np.arange(10) > 1, 1.5, -1.5)), "2 items of 10 run against the rest"),
    (lambda: cohort().assign(resp=lambda t: np.where(t["item"] == 3, 1.0, t["resp"])), "1 item got one answer only"),
    (lambda: pd.concat([cohort(20)] * 5), "repeat another one exactly"),
    (lambda: cohort(items=20, rise=3.0, chosen=lambda p, t, rng: np.minimum(t // 10, 9).astype(int) * 2 + rng.integers(0, 2, p.size)),
     "at a time of its own"),
])
def test_what_cannot_be_told_is_told(table, words):
    said, fit = told(lambda: dy.DynAEsti(standard_errors=False).fit(table()))
    assert words in said
    assert words in fit.summary()
    from dynaesti.findings import told_findings
    from dynaesti.pagedata import page_data

    assert any(words in text for text in told_findings(fit))
    assert any(words in text for text in page_data(fit, None)["cautions"])


def test_ordinary_answers_raise_no_caution():
    assert told(lambda: dy.DynAEsti().fit(cohort(150, 12, 30, seed=4)))[0] == ""


def test_free_directions_say_that_up_is_arbitrary_unless_it_was_said():
    table = cohort(people=200, slope=np.where(np.arange(10) % 2, 1.5, -1.5))
    assert "orient=" in told(lambda: dy.DynAEsti(direction="free", standard_errors=False).fit(table))[0]
    assert told(lambda: dy.DynAEsti(direction="free", orient={"item": 1}, standard_errors=False).fit(table))[0] == ""


def test_guessing_that_nobody_shows_is_told():
    assert "guessing" in told(lambda: dy.DynAEsti("3PL").fit(cohort()))[0]


# --- saved files --------------------------------------------------------------------------------------------------------


def rewritten(path, out, arrays=None, header=None):
    """A saved file with some arrays or header entries replaced, its checksums right."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            raw = old.read(name)
            if name == "header.json" and header is not None:
                told = json.loads(raw)
                header(told)
                raw = json.dumps(told).encode()
            if arrays and name[:-4] in arrays:
                buffer = io.BytesIO()
                np.save(buffer, arrays[name[:-4]](np.load(io.BytesIO(raw))))
                raw = buffer.getvalue()
            new.writestr(name, raw)
    return out


def changed(array, place, value):
    out = array.copy()
    out[place] = value
    return out


@pytest.mark.parametrize(("arrays", "header"), [
    ({"coding.table": lambda a: changed(a, (0, 1), 10**6)}, None), ({"coding.table": lambda a: changed(a, (0, 1), -5)}, None),
    (None, lambda h: h["blocks"][0].update(first_row=10**9)), (None, lambda h: h["blocks"][0].update(size=10**6)),
    ({"responses.item": lambda a: changed(a, 0, 10**6)}, None), ({"responses.person": lambda a: changed(a, -1, 10**6)}, None),
    ({"responses.person": lambda a: a[::-1].copy()}, None), ({"responses.offsets": lambda a: changed(a, 3, np.nan)}, None),
    ({"responses.offsets": lambda a: a[::-1].copy()}, None), ({"block0.u": lambda a: a.astype(complex)}, None),
    ({"block0.u": lambda a: changed(a, (0, 0), np.nan)}, None), ({"block0.items": lambda a: a[::-1] * 0}, None),
    ({"weights": lambda a: a[:, :-1]}, None), ({"prior0.precision": lambda a: a[:-1]}, None), ({"prior0.cav_var": lambda a: -a}, None),
    (None, lambda h: h.update(people=h["people"][:-1])), (None, lambda h: h.update(people=[{}] * len(h["people"]))),
    (None, lambda h: h["options"].update(farthest=1e9)), (None, lambda h: h["kernels"][0][0].update(weight=-1.0)),
    (None, lambda h: h["metric"].update(location="far")), (None, lambda h: h.pop("trace")),
])
def test_crafted_fits_are_refused_before_anything_computes_with_them(small, tmp_path, arrays, header):
    path = dy.DynAEsti(standard_errors=False).fit(small).save(tmp_path / "fit.dyn")
    assert len(dy.load(rewritten(path, tmp_path / "same.dyn")).responses) == len(small)
    with pytest.raises(dy.StorageError):
        dy.load(rewritten(path, tmp_path / "crafted.dyn", arrays, header))


def test_bombs_are_not_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "header.dyn", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", '{"format": "dynaesti", "version": 1, "kind": "fit", "x": [' + "[]," * 20_000_000 + "[]]}")
    with zipfile.ZipFile(tmp_path / "arrays.dyn", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", '{"format": "dynaesti", "version": 1, "kind": "fit"}')
        buffer = io.BytesIO()
        np.save(buffer, np.zeros(20_000_000))
        archive.writestr("a.npy", buffer.getvalue())
    for name in ("header.dyn", "arrays.dyn"):
        with pytest.raises(dy.StorageError, match="unpack"):
            dy.load(tmp_path / name)


def test_a_turned_bit_in_a_shard_is_seen(small, tmp_path):
    fit = dy.DynAEsti(standard_errors=False).fit(dy.prepare(small, tmp_path / "shards", shards=1), out=tmp_path / "run")
    file = tmp_path / "shards" / "shard-00000.parquet"
    whole, rng = file.read_bytes(), np.random.default_rng(0)
    for _ in range(40):
        bad = bytearray(whole)
        bad[rng.integers(len(bad))] ^= 1 << rng.integers(8)
        file.write_bytes(bytes(bad))
        with pytest.raises(dy.StorageError, match="damaged"):
            dy.load(tmp_path / "run").ability([5.0])
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(dy.StorageError, match="damaged"):
        dy.load(tmp_path / "run").ability([5.0])
    file.write_bytes(whole)
    assert len(dy.load(tmp_path / "run").ability([5.0])) == 20
    assert len(fit.ability([5.0])) == 20


def test_damaged_sites_are_left_out(small, tmp_path):
    fit = dy.DynAEsti(standard_errors=False).fit(dy.prepare(small, tmp_path / "shards", shards=1), out=tmp_path / "run")
    right = fit.ability([5.0])["mean"].to_numpy()
    site = next((tmp_path / "run" / "sites").iterdir())
    for content in (b"", b"PK nonsense", site.read_bytes()[:100]):
        site.write_bytes(content)
        np.testing.assert_allclose(dy.load(tmp_path / "run").ability([5.0])["mean"], right, atol=1e-5)


def test_a_run_from_elsewhere_calls_nobody(small, tmp_path):
    fit = dy.DynAEsti(standard_errors=False).fit(dy.prepare(small, tmp_path / "shards", shards=2), out=tmp_path / "run")
    path = Path(fit.run.path("fit.dyn"))
    whole = path.read_bytes()
    for change in (lambda h: h.update(folder="ftp://127.0.0.1:9/shards"), lambda h: h["shards"]["parts"][0].update(file="reference::file:///x"),
                   lambda h: h["shards"]["parts"][0].update(file="memory://elsewhere/x")):
        (tmp_path / "old.dyn").write_bytes(whole)
        rewritten(tmp_path / "old.dyn", path, header=change)
        with pytest.raises(dy.StorageError, match="connect=True"):
            dy.load(tmp_path / "run")
    manifest = tmp_path / "shards" / "shards.json"
    manifest.write_text(manifest.read_text().replace("shard-00000", "http://127.0.0.1:9/shard-00000"))
    with pytest.raises(dy.StorageError, match="elsewhere"):
        dy.Shards.open(str(tmp_path / "shards"))


def test_empty_shards_answer(small, tmp_path):
    fit = dy.DynAEsti(standard_errors=False).fit(dy.prepare(small, tmp_path / "shards", shards=60), out=tmp_path / "run")
    assert len(fit.predict(pd.DataFrame({"id": ["yy", "zz"], "item": ["i0", "i1"], "date": [1.0, 2.0]}))) == 2
    empty = next(k for k, part in enumerate(fit.shards.parts) if not part.people)
    with pytest.raises(dy.InputError, match="nobody"):
        fit.shard(empty)


# --- files, terminal, environment --------------------------------------------------------------------------------------


def test_temporary_files_follow_no_links_and_keep_modes(small, tmp_path):
    fit = dy.DynAEsti(standard_errors=False).fit(small)
    victim, target = tmp_path / "victim", tmp_path / "fit.dyn"
    victim.write_text("mine")
    for pid in range(os.getpid() - 5, os.getpid() + 50):
        (tmp_path / f"fit.dyn.{pid}.part").symlink_to(victim)
    fit.save(target)
    assert victim.read_text() == "mine"
    target.chmod(0o600)
    fit.save(target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".fit.dyn")]


def test_tables_hold_no_formulas_and_every_row_is_one(tmp_path):
    names = ["=cmd|' /C calc'!A0", "+1+1", "@SUM(1)", "a\rb", 'c"d', "e,f", "-5", "-x", "\tg"]
    from dynaesti.commands.output import write_frame

    write_frame(pd.DataFrame({"id": names, "mean": np.arange(9.0)}), tmp_path / "t.csv")
    back = pd.read_csv(tmp_path / "t.csv", dtype={"id": str})
    assert len(back) == 9
    assert back["id"].tolist() == ["'=cmd|' /C calc'!A0", "'+1+1", "'@SUM(1)", "a\rb", 'c"d', "e,f", "-5", "'-x", "'\tg"]


def test_names_set_no_titles_on_a_terminal(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("\x1b]0;owned\x07user,item,resp,date\n1,1,1,1\n")
    _, out, err = spoken(capsys, "validate", tmp_path / "a.csv")
    assert "\x1b" not in out + err
    from dynaesti.commands.output import _aligned

    assert "\x1b" not in _aligned({"id": ["\x1b[31mred"], "mean": [1.0]})


def test_streams_may_be_closed_or_poor(small, tmp_path):
    small.assign(id="Zoë →" + small["id"]).to_csv(tmp_path / "a.csv", index=False)
    dy.DynAEsti(standard_errors=False).fit(tmp_path / "a.csv").save(tmp_path / "fit.dyn")
    base = [sys.executable, "-m", "dynaesti"]
    latin = {**os.environ, "PYTHONIOENCODING": "cp1252"}
    poor = subprocess.run([*base, "ability", tmp_path / "fit.dyn", "--at", "5"], capture_output=True, env=latin)
    assert poor.returncode == 0
    assert b"\\u2192" in poor.stdout
    for words in (["validate", "-"], ["ability", str(tmp_path / "fit.dyn")]):
        shell = subprocess.run(" ".join([*map(str, base), *words]) + " <&- >&-", shell=True, stderr=subprocess.PIPE, timeout=60)
        assert shell.returncode in (0, 1, 2, 3, 4), shell.stderr
        assert b"fault of the program" not in shell.stderr


def test_the_items_handed_out_are_the_callers(small):
    fit = dy.DynAEsti(standard_errors=False).fit(small)
    before = fit.items["a"].to_numpy().copy()
    taken = fit.items
    taken["a"] = 0.0
    np.testing.assert_array_equal(fit.items["a"], before)


def test_without_a_place_to_cache_everything_runs_and_is_told(tmp_path):
    code = ("import warnings, numba.core.caching as c\n"
            "c.CacheImpl._locator_classes = []\nc._CacheImpl = c.CacheImpl\n"
            "with warnings.catch_warnings(record=True) as seen:\n    warnings.simplefilter('always')\n"
            "    from dynaesti.compiled import dot\n    import numpy as np\n    print(dot(np.ones(3), np.ones(3)), [w.category.__name__ for w in seen])\n"
            "    print('NUMBA_CACHE_DIR' in str(seen[0].message))")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["3.0", "['DynaestiWarning']", "True"]


def test_blas_keeps_to_one_thread_and_gets_its_own_back():
    from threadpoolctl import threadpool_info

    from dynaesti.threads import one_blas_thread

    def counts():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    before = counts()
    entered, leave = threading.Event(), threading.Event()

    def other():
        with one_blas_thread():
            entered.set()
            leave.wait(30)

    thread = threading.Thread(target=other)
    with one_blas_thread():
        thread.start()
        entered.wait(30)
        assert set(counts()) == {1}
    assert set(counts()) == {1}  # the other one is still inside
    leave.set()
    thread.join()
    assert counts() == before


@pytest.mark.parametrize("task", [
    lambda f: dy.DynAEsti().fit({"id": 1, "item": 2, "resp": 1, "date": 3}), lambda f: dy.DynAEsti().fit(f.assign(resp=[[1]] * len(f))),
    lambda f: dy.DynAEsti().fit(pd.concat([f, f[["id"]]], axis=1)), lambda f: dy.DynAEsti().fit(f.assign(w=0.0), weight="w"),
    lambda f: dy.DynAEsti().fit(f.assign(w=1e12), weight="w"), lambda f: dy.DynAEsti(checkpoint=5).fit(f),
    lambda f: dy.DynAEsti(checkpoint=".").fit(f),
    lambda f: dy.DynAEsti(kernel=sum([dy.RBF(amplitude="learn")] * 3, dy.RBF(amplitude="learn"))).fit(f),
    lambda f: dy.CurvFiFE(sum([dy.RBF()] * 19, dy.RBF())).fit(TIMES, dy.Bernoulli([0, 1] * 6)),
    lambda f: dy.CurvFiFE().fit([0, 0, 1, 1], dy.Gaussian([0, 5, 0, 5], 1e-9)),
    lambda f: dy.CurvFiFE().fit(TIMES, dy.Gaussian(TIMES * 1e300, 1.0)),
    lambda f: dy.CurvFiFE().fit([-1.7e308, 1.7e308], dy.Bernoulli([0, 1])), lambda f: dy.Responses.from_matrices([["a"]], [[1]]),
    lambda f: dy.prepare(f, 5), lambda f: dy.prepare(f, "x", memory="lots"), lambda f: dy.load("a" * 5000), lambda f: dy.load("a\0b"),
    lambda f: dy.DynAEsti().fit("a" * 5000),
])
def test_odd_calls_are_refused_in_words(small, task):
    began = time.perf_counter()
    with pytest.raises(dy.DynaestiError):
        task(small)
    assert time.perf_counter() - began < 20


def test_odd_questions_are_refused_in_words(small):
    fit, curve = dy.DynAEsti(standard_errors=False).fit(small), dy.CurvFiFE().fit(TIMES, dy.Bernoulli([0, 1] * 6))
    for task in (lambda: fit.above("x", [1.0]), lambda: fit.above(np.nan, [1.0]), lambda: fit.ability(ids=[[1]]), lambda: fit.save(5),
                 lambda: fit.save(""), lambda: fit.live(fit.ids[0]).add(200.0, ["i0"], 1), lambda: fit.ability(np.arange(2e7)),
                 lambda: dy.refresh(fit), lambda: curve.audit(draws=10**9), lambda: curve.sample(TIMES, 10**10),
                 lambda: curve.grid(10**11)):
        with pytest.raises(dy.InputError):
            task()
