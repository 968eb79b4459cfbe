"""Every model on the command line, held against constant abilities."""

import pytest

from dynaesti.cli.dispatch import main
from support.saying import spoken


@pytest.mark.parametrize("model", ["1PL", "4PL", "PCM", "GPCM", "RSM", "NRM", "gaussian", "beta"])
def test_every_model_is_held_against_constant_abilities(tmp_path, capsys, model):
    drawn = "PCM" if model in ("RSM", "NRM") else model
    assert (
        main(
            [
                "simulate",
                "--model",
                drawn,
                "--people",
                "40",
                "--items",
                "8",
                "--answers-per-person",
                "30",
                "--level",
                "0.3",
                "--out",
                str(tmp_path / "s"),
            ]
        )
        == 0
    )
    code, out, err = spoken(
        capsys,
        "fit",
        tmp_path / "s" / "answers.csv",
        "--model",
        model,
        "--out",
        tmp_path / "r",
        "--quiet",
    )
    assert code == 0
    assert "no comparison" not in err
    assert "nowing when" in out
