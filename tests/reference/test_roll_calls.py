"""Votes of courts and assemblies, where the shared data are at hand.

Known positions come out, and thin items do not run away.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import pearsonr, spearmanr

import dynaesti as dy

DATA = Path(__file__).parents[3] / "shared" / "data"
COLUMNS = {"id": "person", "item": "item", "time": "time", "resp": "response"}
pytestmark = pytest.mark.skipif(
    not (DATA / "scotus_votes.parquet").exists(),
    reason="the shared roll calls are not beside this clone",
)


def test_justices_stand_where_martin_and_quinn_put_them():
    """Non-unanimous cases: abilities at each term against their posterior means by MCMC (a constant
    for each justice gets 0.92).
    """
    votes = pd.read_parquet(DATA / "scotus_votes.parquet")
    fit = dy.DynAEsti("2PL").fit(votes[votes["nonunanimous"] == 1], **COLUMNS)
    served = votes.groupby("person")["term"].agg(["min", "max"])
    theirs = pd.read_csv(DATA / "scotus_mq_reference.csv").merge(
        served, left_on="person", right_index=True
    )
    theirs = theirs[
        (theirs["term"] >= theirs["min"]) & (theirs["term"] <= theirs["max"])
    ].sort_values("person", kind="stable")
    ours = np.concatenate(
        [
            fit.ability(at=part["term"].to_numpy() + 0.5, ids=[who])["mean"]
            for who, part in theirs.groupby("person")
        ]
    )
    assert len(theirs) > 500
    assert pearsonr(ours, theirs["mq_mean"])[0] > 0.95
    assert spearmanr(ours, theirs["mq_mean"])[0] > 0.95


def test_unanimous_cases_do_not_carry_slopes_away():
    """Eight votes a case, 39 % of them unanimous.

    At the items' peaks alone the evidence would grow with the slopes for 130 steps.
    """
    fit = dy.DynAEsti("2PL", standard_errors=False).fit(
        pd.read_parquet(DATA / "scotus_votes.parquet"), **COLUMNS
    )
    assert fit.converged
    assert len(fit.trace) < 40
    assert np.median(fit.items["a"]) < 3.0
    told = [step.objective for step in fit.trace if step.stage.startswith("everyone")]
    assert max(told) - told[-1] < 20.0  # nats of some 30,000


def test_east_and_west_stand_apart():
    """General Assembly, roll calls in both directions."""
    votes = pd.read_parquet(DATA / "un_votes_1946_1985.parquet").query("time >= 1983")
    fit = dy.DynAEsti("GRM", direction="free", standard_errors=False).fit(votes, **COLUMNS)
    found = dict(zip(*(fit.ability(at=[1984.0])[name] for name in ("id", "mean")), strict=True))
    east = [found[name] for name in ("Russia", "Bulgaria", "Czechoslovakia")]
    west = [found[name] for name in ("United States", "Israel", "France")]
    assert min(east) - max(west) > 2.0 or min(west) - max(east) > 2.0
