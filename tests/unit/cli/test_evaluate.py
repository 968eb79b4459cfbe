"""`dynaesti evaluate`: forecasts beside simple ones."""

import json

from support.saying import spoken


def test_evaluate_against_baselines(answers, capsys):
    for split in (
        ["--split", "last"],
        ["--split", "people"],
        ["--split", "rolling", "--folds", "2"],
    ):
        code, out, _ = spoken(capsys, "evaluate", answers, "--bandwidth", "0.4", *split, "--json")
        rows = {row["forecast"]: row for row in json.loads(out)["rows"]}
        assert code == 0
        assert list(rows) == ["constant", "item + person", "Elo", "static IRT", "dynamic IRT"]
        assert all(0.2 < row["log_loss"] < 1.2 for row in rows.values())
