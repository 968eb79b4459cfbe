"""Static sets against published and recomputed estimates, where the shared data are at hand."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dynaesti as dy

DATA = Path(__file__).parents[3] / "shared" / "data"
pytestmark = pytest.mark.skipif(
    not (DATA / "static_irt.parquet").exists(),
    reason="the shared reference data are not beside this clone",
)
SLOW = {
    ("Mobility", "1PL"),
    ("Mobility", "2PL"),
    ("Mobility", "3PL"),
    ("WIRS", "3PL"),
}  # in `make bench`


def cases():
    if not (DATA / "static_irt_reference.csv").exists():
        return []
    reference = pd.read_csv(DATA / "static_irt_reference.csv")
    best = reference.groupby(["dataset", "model"])["loglik_check"].max().dropna()
    return [(*key, value) for key, value in best.items() if key not in SLOW]


@pytest.mark.parametrize(("dataset", "model", "reference"), cases())
def test_log_likelihood_reaches_the_reference(dataset, model, reference):
    answers = pd.read_parquet(DATA / "static_irt.parquet").query("dataset == @dataset")
    fit = dy.DynAEsti(model, bandwidth=np.inf, priors=None).fit(
        answers, id="person", item="item", resp="response"
    )
    assert fit.converged
    assert fit.log_evidence > reference - 0.02


def test_standard_errors_are_those_of_the_reference():
    """LSAT7, 2PL: mirt's and ltm's parameters and standard errors."""
    reference = pd.read_csv(DATA / "static_irt_reference.csv").query(
        "dataset == 'LSAT7' and model == '2PL' and kind == 'computed'"
    )
    answers = pd.read_parquet(DATA / "static_irt.parquet").query("dataset == 'LSAT7'")
    fit = dy.DynAEsti("2PL", bandwidth=np.inf, priors=None, tolerance=1e-4).fit(
        answers, id="person", item="item", resp="response"
    )
    items = fit.items.set_index("item")
    for row in reference[reference["parameter"].isin(["a", "b"])].itertuples():
        assert items.loc[row.item, row.parameter] == pytest.approx(row.value, abs=0.02)
        if np.isfinite(row.se):
            assert items.loc[row.item, f"se_{row.parameter}"] == pytest.approx(row.se, rel=0.25)
