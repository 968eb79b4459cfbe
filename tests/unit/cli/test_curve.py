"""`dynaesti curve`: curves from files."""

import numpy as np
import pytest

from support.saying import spoken


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        ("day,yes\n" + "".join(f"{t},{t % 2}\n" for t in range(20)), ["--votes", "yes"]),
        (
            "day,k,n\n" + "".join(f"{t},{t},30\n" for t in range(20)),
            ["--successes", "k", "--trials", "n"],
        ),
        ("day,hits\n" + "".join(f"{t},{5 + t % 4}\n" for t in range(20)), ["--counts", "hits"]),
        (
            "day,x\n" + "".join(f"{t},{np.sin(t / 4)}\n" for t in range(20)),
            ["--values", "x", "--sd", "0.1"],
        ),
    ],
)
def test_curves_from_files(tmp_path, capsys, columns, options):
    path = tmp_path / "a.csv"
    path.write_text(columns)
    code, out, _ = spoken(
        capsys, "curve", path, *options, "--grid", "7", "--figure", tmp_path / "a.png"
    )
    assert code == 0
    assert len(out.strip().splitlines()) == 8
    assert (tmp_path / "a.png").stat().st_size > 5000


def test_curve_wants_what_it_needs(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("day,k\n1,2\n2,3\n")
    code, _, err = spoken(capsys, "curve", tmp_path / "a.csv", "--successes", "k")
    assert code == 3
    assert "--trials" in err
