"""`dynaesti simulate`: files that can be fitted."""

import pandas as pd

from support.saying import spoken


def test_simulate_can_be_fitted(tmp_path, capsys):
    for model in ("2PL", "GRM", "poisson", "beta"):
        folder = tmp_path / model
        assert (
            spoken(
                capsys,
                "simulate",
                "--model",
                model,
                "--people",
                "20",
                "--items",
                "6",
                "--answers-per-person",
                "15",
                "--out",
                folder,
            )[0]
            == 0
        )
        assert len(pd.read_csv(folder / "answers.csv")) == 300
        assert len(pd.read_csv(folder / "true_items.csv")) == 6
    assert spoken(capsys, "validate", tmp_path / "2PL" / "answers.csv")[0] in (0, 1)
    assert spoken(capsys, "simulate", "--level", "2", "--out", tmp_path / "x")[0] == 3
