"""Learners whose abilities move, and the items they answered.

Simulated, fitted, and held against the truth.

Run by `make examples`. Prints tables and draws two figures into demo/.
"""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import dynaesti as dy
from dynaesti import evaluation as evaluate

rng = np.random.default_rng(7)
people, items, answers = 150, 20, 60
days = np.linspace(0, 100, 201)
truth = dy.simulate.curves(days, 30.0, people, seed=rng)
when = np.sort(rng.uniform(0, 100, (people, answers)), axis=1)
item = rng.integers(0, items, (people, answers))
theta = np.array([np.interp(when[k], days, truth[k]) for k in range(people)])
a, b = np.exp(0.3 * rng.standard_normal(items)), rng.standard_normal(items)
chance = 0.2 + 0.8 / (1 + np.exp(-a[item] * (theta - b[item])))
table = {
    "student": np.repeat([f"s{k:03d}" for k in range(people)], answers),
    "problem": np.char.add("q", np.char.zfill(item.ravel().astype(str), 2)),
    "correct": (rng.uniform(size=chance.shape) < chance).ravel().astype(int),
    "day": when.ravel(),
}

estimator = dy.DynAEsti("3PL", unit="days")
fit = estimator.fit(table)
print(fit.summary())
print(f"\n{fit.health}")
print(
    f"\nItems (truth beside):\n{'item':>5} {'a':>5} {'±':>5} {'true':>5}   {'b':>5} {'±':>5} "
    f"{'true':>5}"
)
shown = fit.items
for k in range(6):
    row = {name: np.asarray(shown[name])[k] for name in ("item", "a", "se_a", "b", "se_b")}
    print(
        f"{row['item']:>5} {row['a']:>5.2f} {row['se_a']:>5.2f} {a[k]:>5.2f}   {row['b']:>5.2f} "
        f"{row['se_b']:>5.2f} {b[k]:>5.2f}"
    )

found = fit.ability(days[::10])
real = truth[:, ::10].ravel()
inside = np.mean((np.asarray(found["lower"]) < real) & (real < np.asarray(found["upper"])))
print(f"\nThe 70 % bands cover {inside:.0%} of the true abilities.")
change = fit.change("s003", 10, 90)
print(
    f"s003 changed by {change.mean:+.2f} ± {change.sd:.2f} from day 10 to 90; it rose with "
    f"probability {change.rose:.0%}."
)
print("\nMoving against constant abilities, on held-out answers:")
both = evaluate.dynamic_against_static(estimator, table)
for name, loss, auc in zip(both["abilities"], both["log_loss"], both["auc"], strict=True):
    print(f"  {name:<8} log loss {loss:.4f}, AUC {auc:.3f}")

folder = Path("demo")
folder.mkdir(exist_ok=True)
ax = fit.plot.curves(["s003", "s012", "s040"])
for k, label in ((3, "s003"), (12, "s012"), (40, "s040")):
    colour = next(line.get_color() for line in ax.lines if line.get_label() == label)
    ax.plot(days, truth[k], color=colour, linestyle="--", linewidth=1)
ax.set_xlabel("day (dashed: the truth)")
plt.savefig(folder / "abilities.png", dpi=150)
fit.plot.item("q03")
plt.savefig(folder / "item.png", dpi=150)
print(
    f"\nFigures: {folder / 'abilities.png'}, {folder / 'item.png'}; the fit: "
    f"{fit.save(folder / 'learning.dyn')}"
)
