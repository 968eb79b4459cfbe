"""Files, terminals, threads and odd calls."""

import os
import stat
import subprocess
import sys
import threading
import time

import numpy as np
import pandas as pd
import pytest

import dynaesti as dy
from support.saying import spoken

TIMES = np.arange(12.0)


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
    dy.write_frame(pd.DataFrame({"id": names, "mean": np.arange(9.0)}), tmp_path / "t.csv")
    back = pd.read_csv(tmp_path / "t.csv", dtype={"id": str})
    assert len(back) == 9
    assert back["id"].tolist() == [
        "'=cmd|' /C calc'!A0",
        "'+1+1",
        "'@SUM(1)",
        "a\rb",
        'c"d',
        "e,f",
        "-5",
        "'-x",
        "'\tg",
    ]


def test_names_set_no_titles_on_a_terminal(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("\x1b]0;owned\x07user,item,resp,date\n1,1,1,1\n")
    _, out, err = spoken(capsys, "validate", tmp_path / "a.csv")
    assert "\x1b" not in out + err
    assert "\x1b" not in repr(dy.Frame({"id": ["\x1b[31mred"], "mean": [1.0]}))


def test_the_items_handed_out_are_the_callers(small):
    fit = dy.DynAEsti(standard_errors=False).fit(small)
    before = fit.items["a"].to_numpy().copy()
    taken = fit.items
    taken["a"] = 0.0
    np.testing.assert_array_equal(fit.items["a"], before)


def test_without_a_place_to_cache_everything_runs_and_is_told(tmp_path):
    code = (
        "import warnings, numba.core.caching as c\n"
        "c.CacheImpl._locator_classes = []\nc._CacheImpl = c.CacheImpl\n"
        "with warnings.catch_warnings(record=True) as seen:\n    warnings.simplefilter('always')\n"
        "    from dynaesti.core import dot\n    import numpy as np\n"
        "    print(dot(np.ones(3), np.ones(3)), [w.category.__name__ for w in seen])\n"
        "    print('NUMBA_CACHE_DIR' in str(seen[0].message))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["3.0", "['DynaestiWarning']", "True"]


def test_blas_keeps_to_one_thread_and_gets_its_own_back():
    from threadpoolctl import threadpool_info

    from dynaesti.core.parallel import single_blas_thread

    def counts():
        return [
            library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
        ]

    before = counts()
    entered, leave = threading.Event(), threading.Event()

    def other():
        with single_blas_thread():
            entered.set()
            leave.wait(30)

    thread = threading.Thread(target=other)
    with single_blas_thread():
        thread.start()
        entered.wait(30)
        assert set(counts()) == {1}
    leave.set()
    thread.join()
    assert counts() == before
    with single_blas_thread(), single_blas_thread():
        assert set(counts()) == {1}
    assert counts() == before


@pytest.mark.parametrize(
    "task",
    [
        lambda f: dy.DynAEsti().fit({"id": 1, "item": 2, "resp": 1, "date": 3}),
        lambda f: dy.DynAEsti().fit(f.assign(resp=[[1]] * len(f))),
        lambda f: dy.DynAEsti().fit(pd.concat([f, f[["id"]]], axis=1)),
        lambda f: dy.DynAEsti().fit(f.assign(w=0.0), weight="w"),
        lambda f: dy.DynAEsti().fit(f.assign(w=1e12), weight="w"),
        lambda f: dy.DynAEsti(checkpoint=5).fit(f),
        lambda f: dy.DynAEsti(checkpoint=".").fit(f),
        lambda f: dy.DynAEsti(
            kernel=sum([dy.RBF(amplitude="learn")] * 3, dy.RBF(amplitude="learn"))
        ).fit(f),
        lambda f: dy.CurvFiFE(sum([dy.RBF()] * 19, dy.RBF())).fit(TIMES, dy.Bernoulli([0, 1] * 6)),
        lambda f: dy.CurvFiFE().fit([0, 0, 1, 1], dy.Gaussian([0, 5, 0, 5], 1e-9)),
        lambda f: dy.CurvFiFE().fit(TIMES, dy.Gaussian(TIMES * 1e300, 1.0)),
        lambda f: dy.CurvFiFE().fit([-1.7e308, 1.7e308], dy.Bernoulli([0, 1])),
        lambda f: dy.Responses.from_matrices([["a"]], [[1]]),
        lambda f: dy.prepare(f, 5),
        lambda f: dy.prepare(f, "x", memory="lots"),
        lambda f: dy.load("a" * 5000),
        lambda f: dy.load("a\0b"),
        lambda f: dy.DynAEsti().fit("a" * 5000),
    ],
)
def test_odd_calls_are_refused_in_words(small, task):
    began = time.perf_counter()
    with pytest.raises(dy.DynaestiError):
        task(small)
    assert time.perf_counter() - began < 20


def test_odd_questions_are_refused_in_words(small):
    fit, curve = (
        dy.DynAEsti(standard_errors=False).fit(small),
        dy.CurvFiFE().fit(TIMES, dy.Bernoulli([0, 1] * 6)),
    )
    for task in (
        lambda: fit.probability_above("x", [1.0]),
        lambda: fit.probability_above(np.nan, [1.0]),
        lambda: fit.ability(ids=[[1]]),
        lambda: fit.save(5),
        lambda: fit.save(""),
        lambda: fit.live(fit.ids[0]).add(200.0, ["i0"], 1),
        lambda: fit.ability(np.arange(2e7)),
        lambda: dy.refit_items(fit),
        lambda: curve.audit(draws=10**9),
        lambda: curve.sample(TIMES, 10**10),
        lambda: curve.grid(10**11),
    ):
        with pytest.raises(dy.InputError):
            task()
