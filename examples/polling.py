"""The paper's polling example.

One voter a day for 100 days, and the share of votes behind the answers.

Run by `make examples`. Prints a table and draws a figure into demo/polling.png.
"""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import dynaesti as dy

days = np.arange(1, 101)
x = np.linspace(0, 1, 100)
truth = 0.28 * np.cos(6.2 * x + 1.4) + 0.25 * np.sin(9.7 * x) + 0.45
votes = (np.random.default_rng(3).random(100) < truth).astype(int)

curve = dy.CurvFiFE().fit(days, dy.Bernoulli(votes))

print(curve.summary())
print(f"\n{'day':>4} {'truth':>6} {'curve':>6}  70 % band      Pr[rising]")
shown = np.arange(10, 101, 10)
lower, upper = curve.interval(shown, 0.7)
rising = curve.derivative(shown).rising
for k, day in enumerate(shown):
    print(
        f"{day:>4} {truth[day - 1]:>6.2f} {curve.median(shown)[k]:>6.2f}  {lower[k]:.2f} to "
        f"{upper[k]:.2f}   {rising[k]:>6.2f}"
    )
band = curve.interval(days, 0.7)
print(
    f"\nThe 70 % band covers the truth on {np.mean((band[0] < truth) & (truth < band[1])):.0%} of "
    f"the days."
)
print(curve.audit().verdict)

ax = curve.plot()
ax.plot(days, truth, color="#b45f06", linestyle="--", label="truth")
ax.set(xlabel="day", ylabel="share who would vote for Smith", ylim=(-0.05, 1.05))
ax.legend(frameon=False, ncols=4, loc="upper center", bbox_to_anchor=(0.5, 1.12))
figure = Path("demo") / "polling.png"
figure.parent.mkdir(exist_ok=True)
plt.savefig(figure, dpi=150)
print(f"\nFigure: {figure}")
