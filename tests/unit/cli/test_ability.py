"""`dynaesti ability`: tables in every form."""

import json

import pandas as pd
import pytest

import dynaesti as dy
from support.saying import spoken


def test_ability_in_every_form(run, tmp_path, capsys):
    code, out, _ = spoken(capsys, "ability", run, "--id", "p001", "--at", "0.2", "1.5")
    rows = out.strip().splitlines()
    assert code == 0
    assert rows[0] == "id,time,mean,sd,lower,upper"
    assert len(rows) == 3
    fit = dy.load(run / "fit.dyn")
    assert float(rows[1].split(",")[2]) == pytest.approx(
        float(fit.ability([0.2], ["p001"])["mean"][0]), abs=1e-6
    )
    assert spoken(capsys, "ability", run, "--grid", "5", "--out", tmp_path / "a.parquet")[0] == 0
    assert len(pd.read_parquet(tmp_path / "a.parquet")) == 150
    told = json.loads(spoken(capsys, "ability", run, "--now", "--id", "p002", "--json")[1])
    assert len(told["rows"]) == 1
    code, _, err = spoken(capsys, "ability", run, "--id", "p0012")
    assert code == 3
    assert "did you mean" in err
