"""The Masters: 849 players over 77 years; who was best, and how sure that is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dynaesti.ability_estimator import DynAEsti
from dynaesti.core import Array, Ints
from dynaesti.data import Responses, read_table
from dynaesti.errors import InputError, option
from dynaesti.estimation import build_coding, count_responses, resolve_item_models
from dynaesti.model import BUILT_IN, PivotPartialCredit
from dynaesti.results import Fit
from dynaesti.studies.base import BLUE, GREEN, GREY, ORANGE, Options, Row, Stopwatch, Study, canvas
from dynaesti.tables import as_frame

IDENTITY = BUILT_IN["identity"]
MORE_THAN = 100  # stroke counts seen no more often than this join their neighbour
LEGENDS = ("Arnold Palmer", "Jack Nicklaus", "Tiger Woods")
DRAWS = 2000


def how_to_get_scorecards() -> str:
    """Where the scorecards are, and which table to make of them."""
    return (
        "the scorecards are not ours to ship. They are in the repository of the paper's authors "
        "(golf_data.json of chausies/DynAEstiAndCurvFiFE on GitHub); make a table of them with the "
        "columns person, hole, year, response (strokes) and par, one row a hole played, save it "
        f"as CSV or Parquet, and name it by {option('golf', 'FILE')}"
    )


def read_golf(path: Path | None) -> tuple[Responses, PivotPartialCredit]:
    """Read the scorecards, all rounds of a tournament at its year, and each hole's par.

    Returns the responses and the golf model. Stroke counts that are rare on a hole join others.
    """
    if path is None:
        raise InputError(f"golf: no file is given; {how_to_get_scorecards()}")
    if not path.exists():
        raise InputError(f"golf: {path} does not exist; {how_to_get_scorecards()}")
    frame = read_table(path).frame
    missing = [
        name for name in ("person", "hole", "year", "response", "par") if name not in frame.columns
    ]
    if missing:
        raise InputError(
            f"golf: {path} lacks the columns {', '.join(missing)}; {how_to_get_scorecards()}"
        )
    responses = Responses.read(
        frame.select(["person", "hole", "year", "response"]).to_native(),
        id="person",
        item="hole",
        resp="response",
        time="year",
        unit="years",
    )
    pairs = frame.select(["hole", "par"]).unique()
    model = PivotPartialCredit(
        par=dict(zip(pairs["hole"].to_list(), pairs["par"].to_list(), strict=True))
    )
    return _clipped(responses, model), model


def _clipped(responses: Responses, model: PivotPartialCredit) -> Responses:
    """The responses with rare stroke counts of a hole replaced by those they join.

    It is done before any fit, so that all fits have the same categories.
    """
    models = resolve_item_models(model, responses.items, None, False)
    coding = build_coding(
        responses.items, models, count_responses(responses, models), MORE_THAN + 1
    )
    at = np.searchsorted(coding.values, responses.resp)
    cell = responses.item * coding.values.size + at
    counts = np.bincount(cell, minlength=coding.table.size).reshape(coding.table.shape)
    shown = np.zeros(coding.table.shape)
    for item, codes in enumerate(coding.table):
        for code in np.unique(codes[codes >= 0]):
            group = np.flatnonzero(codes == code)
            shown[item, group] = coding.values[group[counts[item, group].argmax()]]
    return replace(responses, resp=shown[responses.item, at])


def fit_golf(responses: Responses, model: PivotPartialCredit, options: Options, **more: Any) -> Fit:
    """Fit the scorecards; `more` are further options of the estimator."""
    return DynAEsti(model, threads=options.threads, **more).fit(responses)


def run(options: Options) -> Study:
    """Everything the paper tells of the Masters."""
    study = Study("golf", "The Masters, 1937 to 2018")
    responses, model = read_golf(options.golf)
    clock = Stopwatch()
    fit = fit_golf(responses, model, options)
    spent = clock.spent()
    options.print_progress(f"golf: fitted in {spent:.1f} CPU s")
    players = _Players(fit)
    best, probability = players.highest()
    decades = players.decades()
    holes = _hole_information(fit)
    woods = probability.get(("Tiger Woods", 1997.0), 0.0)
    any_woods = sum(p for (name, _), p in probability.items() if name == "Tiger Woods")
    study.figures = _figures(fit, players)
    study.tables = [best, players.peaks(), decades, holes]
    study.rows = [
        *_fit_rows(fit, spent),
        *_highest_rows(best[1], woods, any_woods),
        *_career_rows(decades[1]["median ability"], players.rise_and_fall()),
        *_hole_rows(fit, holes[1]["hole"]),
    ]
    study.words = [
        "All rounds of a tournament are at its year. The prior is the default (a level plus "
        f"Matérn 3/2, learned): {fit.variance_components()['stays']:.0%} of the variance stays "
        f"with a player, "
        f"the rest moves over about {fit.variance_components()['bandwidth']:.0f} years.",
        "Is Woods in 1997 the highest ever? His mean is, as the paper says. But counting what is "
        f"unknown about every curve (joint draws of the {len(players.top)} best players' whole "
        f"curves), that tournament is the highest with probability {woods:.2f} only, and the "
        f"highest is one of his with probability {any_woods:.2f}: a peak that wins among thousands "
        "of uncertain ones is partly luck.",
    ]
    study.facts = {
        "cpu": spent,
        "woods_1997": woods,
        "highest": {f"{name} {year:.0f}": p for (name, year), p in probability.items() if p > 0.01},
        "movement": fit.variance_components(),
    }
    return study


def _figures(fit: Fit, players: _Players) -> list[tuple[str, str, Any]]:
    """The figures, each with its name and caption."""
    return [
        (
            "golf_all",
            "Abilities of everyone with two tournaments or more, the median, and the fifteen with "
            "the highest peaks.",
            _trajectories(players),
        ),
        ("golf_legends", "Three legends with 70 % bands.", _legends(players)),
        (
            "golf_holes",
            "Response functions of holes 6 (Juniper) and 13 (Azalea): probabilities of each number "
            "of strokes.",
            _holes(fit),
        ),
    ]


def _fit_rows(fit: Fit, spent: float) -> list[Row]:
    """Size and cost of the fit."""
    size = f"{fit.responses.people.size}, {len(fit.responses):,}"
    return [
        Row("players, scores", "hundreds, –", size),
        Row(
            "CPU seconds of the fit",
            "over 7,200 a round (its code)",
            f"{spent:.1f}",
            "≤ 60",
            spent <= 60,
        ),
        Row("iterations of EM", "about 15", str(len(fit.trace)), "", None),
    ]


def _highest_rows(best: dict[str, list[Any]], woods: float, any_woods: float) -> list[Row]:
    """Who was best: the highest mean, and the probabilities that it was Woods."""
    player = best["player"][0]
    year = best["year"][0]
    return [
        Row(
            "highest ability ever",
            "Tiger Woods, 1997",
            f"{player}, {year}",
            "",
            (player, year) == ("Tiger Woods", 1997),
        ),
        Row("Pr[Woods 1997 is the highest tournament ever]", "claimed", f"{woods:.2f}"),
        Row("Pr[Woods is the player with the highest peak]", "not reported", f"{any_woods:.2f}"),
    ]


def _career_rows(medians: list[float], rise_and_fall: float) -> list[Row]:
    """The field over the decades, and the shape of careers."""
    return [
        Row(
            "abilities rise over the decades",
            "yes",
            f"{medians[0]:+.2f} to {medians[-1]:+.2f}",
            "",
            medians[-1] > medians[0],
        ),
        Row(
            "careers of ten tournaments or more that rise, then fall",
            "“a common trend”",
            f"{rise_and_fall:.0%}",
            "",
            rise_and_fall > 0.5,
        ),
    ]


def _hole_rows(fit: Fit, by_information: list[Any]) -> list[Row]:
    """Holes 6 and 13 by their information, and the categories of hole 8."""
    six = by_information.index(6) + 1
    thirteen = by_information.index(13) + 1
    most = float(fit.coding.values[fit.coding.table[fit.item_numbers[8]] >= 0].max())
    return [
        Row(
            "hole 6 flat, hole 13 telling (rank by information)",
            "yes",
            f"{six} and {thirteen} of 18",
            "",
            six > thirteen,
        ),
        Row(
            "strokes that hole 8 keeps (counts over 100)",
            "up to 6 in its list",
            f"up to {most:g}",
            "up to 7",
            most == 7,
        ),
    ]


class _Players:
    """Abilities of the players at their tournaments."""

    def __init__(self, fit: Fit) -> None:
        self.fit = fit
        r = fit.responses
        pairs = np.unique(
            np.stack([r.person, np.rint(r.offsets + r.axis.origin).astype(np.int64)]), axis=1
        )
        self.person, self.year = pairs
        self.offset = self.year - r.axis.origin
        self.mean = fit.marginals(self.person, self.offset).mean(IDENTITY)
        self.count = np.bincount(self.person, minlength=r.people.size)
        self.names = [str(name) for name in r.people.tolist()]
        self.peak = np.full(r.people.size, -np.inf)
        np.maximum.at(self.peak, self.person, self.mean)
        order = np.argsort(-np.where(self.count >= 2, self.peak, -np.inf), kind="stable")
        self.top = order[:60]

    def own(self, person: int) -> Ints:
        """Indices of a player's tournaments."""
        return np.flatnonzero(self.person == person)

    def draws(self, person: int, seed: int) -> Array:
        """Joint draws of a player's abilities at the tournaments: array (DRAWS, n_tournaments)."""
        times = self.fit.from_clock(self.offset[self.own(person)])
        return np.asarray(self.fit.plausible(self.fit.ids[person], times, DRAWS, seed)).reshape(
            DRAWS, -1
        )

    def highest(self) -> tuple[tuple[str, dict[str, list[Any]]], dict[tuple[str, float], float]]:
        """A table of the highest peaks, and how probably each tournament is the highest ever.

        The probabilities are shares of joint draws of the best players' curves, by the player's
        name and the year.
        """
        tournaments = np.concatenate([self.own(int(p)) for p in self.top])
        drawn = np.concatenate([self.draws(int(p), 17 + k) for k, p in enumerate(self.top)], axis=1)
        wins = np.bincount(drawn.argmax(axis=1), minlength=tournaments.size) / DRAWS
        probability = {
            (self.names[self.person[k]], float(self.year[k])): float(w)
            for k, w in zip(tournaments, wins, strict=True)
        }
        by_player: dict[str, float] = {}
        for (name, _), p in probability.items():
            by_player[name] = by_player.get(name, 0.0) + p
        best = []
        for p in self.top[:12]:
            mine = self.own(int(p))
            k = mine[self.mean[mine].argmax()]
            name = self.names[p]
            year = int(self.year[k])
            best.append(
                (name, year, float(self.mean[k]), probability[name, float(year)], by_player[name])
            )
        columns = zip(*best, strict=True)
        names = (
            "player",
            "year",
            "ability",
            "Pr[this is the highest ever]",
            "Pr[the highest is theirs]",
        )
        return (
            "The highest peaks (by mean), each player once:",
            {
                name: [round(v, 3) if isinstance(v, float) else v for v in column]
                for name, column in zip(names, columns, strict=True)
            },
        ), probability

    def peaks(self) -> tuple[str, dict[str, list[Any]]]:
        """A table of when the legends peaked."""
        table: dict[str, list[Any]] = {
            "player": [],
            "tournaments": [],
            "peak year (mean)": [],
            "80 % of the draws": [],
            "ability": [],
        }
        for name in LEGENDS:
            person = self.names.index(name)
            mine = self.own(person)
            years = np.sort(self.year[mine][self.draws(person, 5).argmax(axis=1)])
            table["player"].append(name)
            table["tournaments"].append(int(mine.size))
            table["peak year (mean)"].append(int(self.year[mine[self.mean[mine].argmax()]]))
            table["80 % of the draws"].append(
                f"{years[int(0.1 * DRAWS)]} to {years[int(0.9 * DRAWS)]}"
            )
            table["ability"].append(round(float(self.mean[mine].max()), 2))
        return "When three legends peaked:", table

    def decades(self) -> tuple[str, dict[str, list[Any]]]:
        """A table of the field's abilities, decade by decade."""
        decade = self.year // 10 * 10
        shown = np.unique(decade)
        return "The field, decade by decade:", {
            "decade": [f"{d}s" for d in shown],
            "players and years": [int((decade == d).sum()) for d in shown],
            "median ability": [round(float(np.median(self.mean[decade == d])), 2) for d in shown],
            "highest tenth": [
                round(float(np.quantile(self.mean[decade == d], 0.9)), 2) for d in shown
            ],
        }

    def rise_and_fall(self) -> float:
        """Share of long careers whose mean curve peaks inside (not in the first or last tenth)."""
        long = np.flatnonzero(self.count >= 10)
        inside = 0
        for p in long:
            mine = self.own(int(p))
            position = self.mean[mine].argmax() / (mine.size - 1)
            inside += int(0.1 < position < 0.9)
        return inside / max(long.size, 1)


def _trajectories(players: _Players) -> Any:
    """Everyone's mean curve, the best fifteen in colour."""
    figure, ax = canvas(width=9.0, height=5.2)
    for p in np.flatnonzero(players.count >= 2):
        mine = players.own(int(p))
        ax.plot(players.year[mine], players.mean[mine], color=GREY, linewidth=0.5, alpha=0.35)
    colours = [BLUE, ORANGE, GREEN, "#990000", "#674ea7"]
    for k, p in enumerate(players.top[:15]):
        mine = players.own(int(p))
        ax.plot(
            players.year[mine],
            players.mean[mine],
            color=colours[k % 5],
            linewidth=1.6,
            linestyle=("-", "--", ":")[k // 5],
            label=players.names[p],
        )
    years = np.unique(players.year)
    ax.plot(
        years,
        [np.median(players.mean[players.year == y]) for y in years],
        color="black",
        linewidth=2.5,
        label="median of the field",
    )
    ax.set(xlabel="year", ylabel="ability")
    ax.legend(frameon=False, fontsize=7.5, ncols=1, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _legends(players: _Players) -> Any:
    """The legends' curves with 70 % bands."""
    figure, ax = canvas(width=7.5)
    for name, colour in zip(LEGENDS, (ORANGE, GREEN, BLUE), strict=True):
        person = players.names.index(name)
        mine = players.own(person)
        t = np.linspace(players.offset[mine].min(), players.offset[mine].max(), 200)
        mix = players.fit.marginals(np.full(t.size, person), t)
        low, high = mix.quantiles(np.array([0.15, 0.85]), IDENTITY)
        x = t + players.fit.responses.axis.origin
        ax.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
        ax.plot(x, mix.mean(IDENTITY), color=colour, linewidth=2, label=name)
    ax.set(xlabel="year", ylabel="ability (70 % bands)")
    ax.legend(frameon=False)
    return figure


def _holes(fit: Fit) -> Any:
    """Response functions of two holes."""
    figure, axes = canvas(1, 2, 11.0, 4.0)
    for ax, hole, name in ((axes[0], 6, "hole 6, Juniper"), (axes[1], 13, "hole 13, Azalea")):
        data = as_frame(fit.plot.item_data(hole)).to_arrays()
        ability = data.pop("ability")
        for k, (strokes, probability) in enumerate(
            sorted(data.items(), key=lambda pair: float(pair[0]))
        ):
            colour = (BLUE, ORANGE, GREEN, "#990000", "#674ea7", GREY)[k % 6]
            ax.plot(ability, probability, linewidth=2, color=colour, label=f"{strokes} strokes")
        ax.set(title=name, xlabel="ability", ylabel="probability", ylim=(0, 1), xlim=(-3, 3))
        ax.legend(frameon=False, fontsize=8)
    return figure


def _hole_information(fit: Fit) -> tuple[str, dict[str, list[Any]]]:
    """A table of the holes by the information of one score, averaged over the population."""
    z = np.linspace(-3, 3, 121)
    ability = fit.shift + fit.gain * z
    weight = np.exp(-0.5 * z**2)
    value = fit.information_at(ability) @ (weight / weight.sum())
    order = np.argsort(-value)
    labels = fit.responses.items.tolist()
    return (
        "Holes by information (which are skill, which are luck):",
        {
            "hole": [labels[k] for k in order],
            "information of a score": [round(float(value[k]), 4) for k in order],
            "share of the course's": [f"{value[k] / value.sum():.0%}" for k in order],
        },
    )
