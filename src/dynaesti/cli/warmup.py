"""Compile the inner loops ahead of the first fit, once on a machine.

What is compiled is kept on disk: beside the package, or where NUMBA_CACHE_DIR says.
"""

from __future__ import annotations

import argparse
import time
import warnings

from dynaesti.cli.output import print_result

EXAMPLE = "  dynaesti warmup"


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb: none but those of all."""


def run(args: argparse.Namespace) -> int:
    """Run small fits that meet what most fits need."""
    from dynaesti.core import COMPILING

    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit_small()
    facts = {
        "functions": COMPILING.functions,
        "compiling": round(COMPILING.seconds, 1),
        "cpu": round(time.process_time() - begun, 1),
    }
    said = (
        f"Compiled {facts['functions']} functions in {facts['compiling']} CPU s; they are kept."
        if facts["functions"]
        else "Everything was compiled already."
    )
    print_result(args, facts, said)
    return 0


def fit_small() -> None:
    """Fit right and wrong answers, graded ones, constant abilities, a curve; score an answer."""
    import numpy as np

    from dynaesti.ability_estimator import DynAEsti
    from dynaesti.curve_estimator import CurvFiFE
    from dynaesti.model import Bernoulli, simulate
    from dynaesti.results import compare_with_static, evaluation

    for model in ("2PL", "GRM"):
        table = simulate.responses(60, 20, 40, model=model, growth=1.0, seed=1).table
        chosen = DynAEsti(model)
        fit = chosen.fit(table)
        compare_with_static(chosen, fit)
        evaluation.drift(fit)
        fit.people()
        fit.ability([10.0, 50.0])
        scorer = fit.scorer()
        scorer.add(scorer.start(), 1.0, "i00", table["resp"][0])
    day = np.arange(40.0)
    CurvFiFE().fit(day, Bernoulli((np.sin(day / 8) > 0).astype(float))).interval(day)
