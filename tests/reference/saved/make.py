"""Files as the package saved them before its modules were renamed (commit f20868e).

They must go on opening.

Run with that commit's `src` on PYTHONPATH: `python tests/reference/saved/make.py FOLDER`.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np

import dynaesti as dy

sys.path.insert(0, str(Path(__file__).parents[2] / "golden"))
from cases import table, votes


def main() -> None:
    """Write a curve, a fit with an update, and what they say."""
    folder = Path(sys.argv[1])
    warnings.simplefilter("ignore")
    days, seen = votes(25, 0)
    curve = dy.CurvFiFE().fit(days, dy.Bernoulli(seen))
    curve.save(folder / "curve.dyn")
    data = table(people=8, items=4, each=8, top=2)
    fit = dy.DynAEsti("GRM", iterations=8).fit(data)
    new = {"id": ["p00", "p01"], "item": ["q1", "q2"], "resp": [1, 0], "date": [101.0, 105.0]}
    fit = fit.update(new)
    fit.save(folder / "fit.dyn")
    at = [10.0, 50.0, 120.0]
    says = {
        "curve.mean": curve.mean(at).tolist(),
        "curve.sd": curve.sd(at).tolist(),
        "curve.loo": curve.loo.tolist(),
        "fit.mean": np.asarray(fit.ability(at)["mean"]).tolist(),
        "fit.sd": np.asarray(fit.ability(at)["sd"]).tolist(),
        "fit.a": np.asarray(fit.items["a"]).tolist(),
    }
    (folder / "says.json").write_text(json.dumps(says, indent=1) + "\n")


if __name__ == "__main__":
    main()
