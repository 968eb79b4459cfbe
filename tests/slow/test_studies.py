"""The paper's studies: small runs of each, and the claims they stand on."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import dynaesti as dy
from dynaesti.cli.dispatch import main
from dynaesti.results.updates import fit_new_people, read_new_responses
from dynaesti.studies import golf, polling, synthetic
from dynaesti.studies.base import Options
from dynaesti.studies.held_out_careers import _joint
from dynaesti.studies.synthetic_data import paper

QUICK = Options(seeds=1, quick=True, quiet=True, threads=2)


@pytest.fixture(scope="module")
def scorecards(tmp_path_factory):
    """A small tour with the columns of the real one.

    Three legends, a rising field, holes of different telling.
    """
    rng = np.random.default_rng(0)
    names = [*golf.LEGENDS, *[f"player {k}" for k in range(12)]]
    pars = {hole: 3 + hole % 3 for hole in range(1, 19)}
    rows = []
    for k, name in enumerate(names):
        level, peak = rng.normal(0, 0.5), rng.uniform(5, 15)
        for year in range(1990, 2005) if k < 8 else range(1995, 1998):
            theta = level + 0.8 - 0.012 * (year - 1990 - peak) ** 2
            for hole, par in pars.items():
                a = 0.1 if hole == 6 else 0.9
                for _ in range(6):
                    better = rng.random() < 0.35 / (1 + np.exp(-a * theta))
                    worse = rng.random() < 0.5 / (1 + np.exp(a * theta))
                    rows.append(
                        (
                            name,
                            hole,
                            year,
                            par - better + (worse and not better) + (rng.random() < 0.01) * 3,
                            par,
                        )
                    )
    path = tmp_path_factory.mktemp("golf") / "golf.csv"
    pd.DataFrame(rows, columns=["person", "hole", "year", "response", "par"]).to_csv(
        path, index=False
    )
    return path


def test_polling_and_prior(tmp_path, capsys):
    assert main(["reproduce", "polling", "--quick", "--out", str(tmp_path), "--quiet"]) == 0
    assert "cover of the 70 % band by mean field" in capsys.readouterr().out
    told = json.loads((tmp_path / "polling.json").read_text())
    assert told["facts"]["mean_field_cover70"] < 0.2
    assert {path.name for path in tmp_path.iterdir()} == {
        "polling.json",
        "polling.png",
        "polling.svg",
    }
    assert main(["reproduce", "prior", "--out", str(tmp_path), "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["studies"][0]["rows"][0]["holds"] is True


def test_mean_field_is_the_best_factorised_gaussian():
    """Its divergence rises whichever way a mean or a variance is moved (by Monte Carlo on common
    draws).
    """
    from scipy.special import log_ndtr, ndtri

    y = polling.votes(1)
    median, low, high = polling.mean_field(y, level=0.6826894921)
    m, s = ndtri(median), 0.5 * (ndtri(high) - ndtri(low))
    precision = np.linalg.inv(
        np.exp(-0.5 * ((polling.DAYS[:, None] - polling.DAYS) / 20.0) ** 2) + 1e-4 * np.eye(100)
    )
    e = np.random.default_rng(0).standard_normal((4000, 100))
    e = np.concatenate([e, -e])
    sign = np.where(y > 0, 1.0, -1.0)

    def free_energy(m, s):
        x = m + s * e
        prior = 0.5 * (m @ precision @ m + (np.diag(precision) * s**2).sum())
        return prior - log_ndtr(sign * x).sum(axis=1).mean() - np.log(s).sum()

    best = free_energy(m, s)
    for k in (0, 40, 99):
        for step in (-0.05, 0.05):
            moved = m.copy()
            moved[k] += step
            assert free_energy(moved, s) > best
            wider = s.copy()
            wider[k] *= np.exp(4 * step)
            assert free_energy(m, wider) > best


def test_variants_lie_between_the_papers_way_and_ours():
    truth = paper(60, 60, seed=0)
    fit = dy.DynAEsti("3PL", kernel="rbf", scale="items", threads=2).fit(synthetic.matrices(truth))
    caption, table = synthetic._variants(truth, fit, QUICK)
    assert "first seed" in caption
    assert len(table["variant"]) == 6
    assert table["ability"][0] > table["ability"][-1]
    assert np.isfinite(table["irf"]).all()


def test_known_items_leave_abilities_only():
    truth = paper(40, 60, seed=1)
    found = synthetic.recovery(synthetic._known_items(truth, QUICK), truth)
    assert found["irf"] < 1e-6
    assert found["ability"] < 0.25


def test_golf_from_a_file(scorecards, tmp_path, capsys):
    assert (
        main(
            [
                "reproduce",
                "golf",
                "--golf",
                str(scorecards),
                "--out",
                str(tmp_path),
                "--quiet",
                "--page",
                str(tmp_path / "p.md"),
            ]
        )
        == 0
    )
    told = json.loads((tmp_path / "golf.json").read_text())
    tables = {table["caption"]: table["columns"] for table in told["tables"]}
    assert tables["Holes by information (which are skill, which are luck):"]["hole"][-1] == 6
    page = (tmp_path / "p.md").read_text()
    assert "![" in page
    assert (tmp_path / "p" / "golf_all.png").stat().st_size > 10_000
    assert "| players, scores |" in page


def test_rare_strokes_join_their_neighbour_once_and_for_all(scorecards):
    responses, _ = golf.read_golf(scorecards)
    for item in range(18):
        counts = np.unique(responses.resp[responses.item == item], return_counts=True)[1]
        assert counts.min() > golf.MORE_THAN or counts.size <= 2


def test_joint_likelihoods_are_chains_of_predictions(scorecards):
    """Log p(second half | first) is the sum of one-by-one predictions, each given all before it."""
    responses, model = golf.read_golf(scorecards)
    fit = golf.fit_golf(
        responses, model, QUICK, bandwidth=8.0, standard_errors=False, iterations=20
    )
    mine = np.flatnonzero(responses.person == 0)
    first, more = mine[:60], mine[60:66]
    total = 0.0
    for k in range(more.size):
        before = _part(responses, first, more[:k])
        scored = fit_new_people(fit, _as_new(fit, before))
        found = scored.predictions(read_new_responses(scored, _part(responses, more[k : k + 1])))
        total += float(np.log(found.given[0]))
    joint = _joint(fit, _part(responses, first, more))[0] - _joint(fit, _part(responses, first))[0]
    assert joint == pytest.approx(total, abs=0.02)


def _part(responses, *rows):
    return responses.select_responses(np.concatenate(rows), drop_unused=True)


def _as_new(fit, answers):
    new = read_new_responses(fit, answers)
    return replace(new, people=np.full(new.people.size, -1))


def test_without_the_file_it_is_said_how_to_get_it(tmp_path, capsys):
    assert main(["reproduce", "golf", "--out", str(tmp_path)]) == 3
    assert "not ours to ship" in capsys.readouterr().err
    (tmp_path / "odd.csv").write_text("person,hole\na,1\n")
    assert (
        main(["reproduce", "palmer", "--golf", str(tmp_path / "odd.csv"), "--out", str(tmp_path)])
        == 3
    )
    assert "lacks the columns year, response, par" in capsys.readouterr().err
