"""Effects on shards: what memory gives, updates, refusals, tests of items by their columns."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from dynaesti.cli import main
from dynaesti.errors import InputError
from support.simulated import people_with_columns

FORMULA = "age * time + C(lang) + practice(item) + random(rater)"


@pytest.fixture(scope="module")
def table():
    return people_with_columns()


@pytest.fixture(scope="module")
def sharded(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("effects")
    shards = dy.prepare(table, folder / "shards", shards=3, effects=FORMULA)
    return dy.DynAEsti("2PL", effects=FORMULA).fit(shards, out=folder / "run")


@pytest.fixture(scope="module")
def memory(table):
    return dy.DynAEsti("2PL", effects=FORMULA).fit(table)


def test_shards_give_what_memory_gives(sharded, memory, table):
    ours, theirs = sharded.effects, memory.effects
    assert list(ours["term"]) == list(theirs["term"])
    for name in ("estimate", "se"):
        assert_allclose(ours[name], theirs[name], rtol=1e-4, atol=1e-6)
    assert sharded.log_evidence == pytest.approx(memory.log_evidence, abs=1e-4)
    some = table.head(20)
    assert_allclose(sharded.predict(some)["p1"], memory.predict(some)["p1"], rtol=1e-5, atol=1e-7)
    at = [20.0, 80.0]
    ids = ["p03", "p17"]
    assert_allclose(sharded.ability(at, ids)["mean"], memory.ability(at, ids)["mean"], atol=1e-5)
    again = dy.load(sharded.run.root)
    assert_allclose(again.effects["estimate"], ours["estimate"])


def test_items_are_tested_by_columns_of_effects(sharded, memory):
    for column in ("lang", "age"):
        ours, theirs = (dy.evaluation.dif(f, column, purify=False) for f in (sharded, memory))
        assert_allclose(ours["effect"], theirs["effect"], rtol=1e-3, atol=1e-5)
        assert_allclose(ours["p"], theirs["p"], rtol=1e-3, atol=1e-5)


def test_updates_bring_their_columns(table, tmp_path):
    early = table[table["date"] < 70]
    late = table[table["date"] >= 70].assign(rater=9)  # a rater whom nobody knows
    shards = dy.prepare(early, tmp_path / "shards", shards=2, effects=FORMULA)
    fit = dy.DynAEsti("2PL", effects=FORMULA).fit(shards, out=tmp_path / "run")
    with pytest.raises(InputError, match="rater"):
        fit.update(late.drop(columns="rater"))
    grown = fit.update(late)
    assert "9" in grown.shards.covariates["rater"]
    assert sum(len(part.responses) for part in grown.parts()) == len(table)
    memory = dy.DynAEsti("2PL", effects=FORMULA).fit(early).update(late)
    at, ids = [90.0], ["p03", "p17"]
    assert_allclose(grown.ability(at, ids)["mean"], memory.ability(at, ids)["mean"], atol=1e-4)
    again = dy.refit_items(grown)
    assert "random(rater)[9]" in list(again.effects["term"])


def test_what_shards_lack_is_named(table, tmp_path):
    shards = dy.prepare(table, tmp_path / "plain", shards=2)
    with pytest.raises(InputError, match="prepared without the column 'age'"):
        dy.DynAEsti("2PL", effects="age").fit(shards)
    numbers = dy.prepare(table, tmp_path / "numbers", shards=2, effects="rater")
    with pytest.raises(InputError, match="prepared without the column 'rater' of this formula"):
        dy.DynAEsti("2PL", effects="random(rater)").fit(numbers)
    # a fit without effects needs no columns, of shards or of updates
    fit = dy.DynAEsti("1PL", bandwidth=np.inf).fit(numbers)
    plain = table.head(3).assign(date=200.0)[["id", "item", "resp", "date"]]
    assert fit.update(plain).shards.rows == len(table) + 3


def test_command_line(table, tmp_path, capsys):
    table.to_csv(tmp_path / "answers.csv", index=False)
    shards, run = str(tmp_path / "shards"), str(tmp_path / "run")
    given = [str(tmp_path / "answers.csv"), "--out", shards, "--effects", "age + random(rater)"]
    assert main(["prepare", *given]) == 0
    assert main(["fit", shards, "--out", run, "--effects", "age", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["effects", run]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("age,")
    assert main(["fit", shards, "--out", f"{run}2", "--effects", "lang", "--quiet"]) == 3
    assert "--effects lang" in capsys.readouterr().err
