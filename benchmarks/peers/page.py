"""docs/evidence/benchmarks.md from the results: tables, what was won, and where we lose."""

from typing import Any

import numpy as np

from benchmarks.peers.data import LOGS, SPLITS
from benchmarks.peers.next_answers import SETS

Told = dict[str, Any]


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join(
        [
            "| " + " | ".join(head) + " |",
            "|" + "---|" * len(head),
            *("| " + " | ".join(row) + " |" for row in rows),
        ]
    )


def number(value: Any, digits: int = 4) -> str:
    return "" if value is None or value != value else f"{value:,.{digits}f}"


def seconds(value: float) -> str:
    return (
        f"{1e3 * value:.1f} ms"
        if value < 0.1
        else f"{value:.2f} s"
        if value < 10
        else f"{value:,.0f} s"
    )


# --- prediction


def contests(told: Told) -> dict[tuple[str, str], Told]:
    found = {
        (log.name, how): told.get(f"prediction {log.name} {how}") for log in LOGS for how in SPLITS
    }
    return {key: value for key, value in found.items() if value and "rows" in value}


def prediction(told: Told) -> str:
    names = list(dict.fromkeys(name for found in contests(told).values() for name in found["rows"]))
    overview = []
    for (log, how), found in contests(told).items():
        losses = {name: row["log_loss"] for name, row in found["rows"].items() if "log_loss" in row}
        best = min(losses, key=losses.__getitem__)
        cells = [
            f"**{losses[name]:.4f}**" if name == best else number(losses.get(name))
            for name in names
        ]
        overview.append(
            [log if how == "cells" else "", how, *cells, number(found["rows"]["ours"]["se"])]
        )
    parts = [
        "### Log loss, all contests",
        table(["log", "held out", *names, "se of ours"], overview),
    ]
    for (log, how), found in contests(told).items():
        rows = [
            [
                name,
                number(row.get("log_loss")),
                number(row.get("se")),
                number(row.get("brier")),
                number(row.get("auc")),
                number(row.get("imv")),
                number(row.get("calibration")),
                "" if name == "ours" else f"{row['behind_ours']:+.4f} ± {row['behind_se']:.4f}",
                seconds(row["cpu_seconds"]),
            ]
            if "log_loss" in row
            else [name, row["failed"], *[""] * 7]
            for name, row in found["rows"].items()
        ]
        head = [
            "forecast",
            "log loss",
            "se",
            "Brier",
            "AUC",
            "IMV",
            "calibration error",
            "behind ours",
            "CPU",
        ]
        title = f"{log}, {how}: {found['test']:,} answers of {found['people']:,} people held out, {found['train']:,} to learn from"
        parts.append(f"<details><summary>{title}</summary>\n\n{table(head, rows)}\n\n</details>")
    return "\n\n".join(parts)


def next_answers(told: Told) -> str:
    """Means over the seeds of the split."""
    rows = []
    dates = set()
    for log in SETS:
        contests = [one for key, one in told.items() if key.startswith(f"next answers {log} ")]
        found = [one["rows"] for one in contests if "rows" in one]
        dates |= {one["date"] for one in contests if "rows" in one}
        for name in found[0] if found else ():
            cells = [
                number(float(np.mean([one[name][key] for one in found])))
                for key in ("log_loss", "auc", "behind")
            ]
            rows.append([log, name, *cells, str(len(found))])
    if not rows:
        return "Not measured in this run."
    head = ["log", "forecast", "log loss", "AUC", "behind ours with practice", "splits"]
    return f"Measured on {', '.join(sorted(dates))}.\n\n{table(head, rows)}"


def missing(told: Told) -> str:
    found = {key[8:]: value for key, value in told.items() if key.startswith("missing ")}
    if not found:
        return ""
    names = list(next(iter(found.values()))["gains"])
    rows = [
        [
            name,
            *(
                f"{v['gains'][name]['gain']:+.4f} ± {v['gains'][name]['se']:.4f}"
                for v in found.values()
            ),
        ]
        for name in names
    ]
    return table(
        [
            "gain in held-out log loss",
            *(f"{key} ({v['log_loss']:.4f})" for key, v in found.items()),
        ],
        rows,
    )


# --- truth, speed, growth


def truth(told: Told) -> str:
    sbc = {key[4:]: value for key, value in told.items() if key.startswith("sbc ")}
    rows = [
        [
            name,
            f"{v['sets']:,}",
            " ".join(map(str, v["counts"])),
            number(v["chi2"], 1),
            number(v["p"], 3),
            number(v["cover_70"], 3),
            number(v["cover_95"], 3),
        ]
        for name, v in sbc.items()
    ]
    parts = [
        table(
            ["pipeline", "data sets", "ranks in 20 bins", "χ²", "p", "70 % band covers", "95 %"],
            rows,
        )
    ]
    nuts = {key: value for key, value in told.items() if key.startswith("nuts ")}
    rows = [
        [
            key,
            kind,
            str(v["abilities"]),
            number(v["mean_off_in_sds"]),
            number(v["mean_off_most"]),
            f"{v['sd_off_mean']:.2%}",
            f"{v['sd_off_most']:.2%}",
            number(v.get("log_evidence_off_mean")),
            seconds(v["cpu_seconds"]),
            seconds(v["nuts_cpu_seconds"]),
        ]
        for key, found in nuts.items()
        for kind, v in found.items()
    ]
    head = [
        "problem",
        "items",
        "abilities",
        "means apart, in sds",
        "at most",
        "sds apart",
        "at most",
        "log evidence apart, a person",
        "CPU",
        "CPU of NUTS",
    ]
    return "\n\n".join([*parts, table(head, rows)])


def speed(told: Told) -> str:
    parts = []
    for key, rows in told.items():
        if not key.startswith("speed "):
            continue
        first = next(row for row in rows.values() if "warm" in row)
        score = next(name for name in first if name not in ("cold", "warm", "runs"))
        body = [
            [
                name,
                number(row.get(score)),
                seconds(row["warm"]),
                seconds(row["cold"]),
                f"{row['warm'] / first['warm']:,.1f}",
            ]
            if "warm" in row
            else [name, row["failed"], "", "", ""]
            for name, row in rows.items()
        ]
        parts.append(
            f"**{key[6:]}**\n\n{table(['', score.replace('_', ' '), 'warm', 'cold', 'times the first'], body)}"
        )
    return "\n\n".join(parts)


def growth(told: Told) -> str:
    parts = []
    for key, found in told.items():
        if not key.startswith("growth "):
            continue
        rows = [
            [
                f"{row['people']:,}",
                f"{row['each']:,}",
                f"{row['items']:,}",
                f"{row['ratio']:g}",
                f"{row['answers']:,}",
                seconds(row["cpu_seconds"]),
                str(row["steps"]),
                str(row["priors"]),
                number(1e6 * row["cpu_seconds"] / row["answers"] / row["steps"] / row["priors"], 2),
                f"{row['peak_gb']:.2f} GB",
            ]
            for row in found["rows"]
            if "steps" in row
        ]
        head = [
            "people",
            "answers each",
            "items",
            "span / bandwidth",
            "answers",
            "CPU",
            "steps",
            "priors",
            "µs an answer, step and prior",
            "memory",
        ]
        parts.append(f"**Against {key[7:]}**\n\n{table(head, rows)}")
    return "\n\n".join(parts)


# --- what was won, what was lost


def beaten(told: Told) -> list[str]:
    """Every comparison in which someone else is ahead of ours, however little."""
    out = []
    for (log, how), found in contests(told).items():
        for name, row in found["rows"].items():
            if name != "ours" and row.get("behind_ours", 0.0) < 0:
                apart, se = -row["behind_ours"], row["behind_se"]
                sure = (
                    "within one standard error"
                    if apart <= se
                    else "within two"
                    if apart <= 2 * se
                    else "clearly"
                )
                out.append(f"- {log}, {how}: {name} is ahead by {apart:.4f} ± {se:.4f} ({sure}).")
    for key, rows in told.items():
        if not key.startswith("speed "):
            continue
        mine = next((row for row in rows.values() if "warm" in row), {})
        for name, row in rows.items():
            if name.startswith("ours"):
                continue
            for what in (score for score in mine if score != "runs"):
                if row.get(what, np.inf) < mine[what]:
                    told_as = seconds if what in ("warm", "cold") else number
                    out.append(
                        f"- {key[6:]}: {name} is ahead in {what.replace('_', ' ')} "
                        f"({told_as(row[what])} against "
                        f"{told_as(mine[what])})."
                    )
    for key, found in told.items():
        if key.startswith("sbc ") and found["p"] < 0.01:
            out.append(
                f"- Calibration, {key[4:]}: the ranks are not uniform (p = {found['p']:.2g})."
            )
    return out


def absent(told: Told) -> str:
    """What a partial run leaves out."""
    lacking = [
        f"{log.name} {how}"
        for log in LOGS
        for how in SPLITS
        if f"prediction {log.name} {how}" not in told
    ]
    parts = ("missing", "nuts", "speed static GRM", "speed static 3PL", "growth")
    lacking += [part for part in parts if not any(key.startswith(part) for key in told)]
    return f"**Not in this run: {', '.join(lacking)}.**\n" if lacking else ""


def sat(run: Told) -> str:
    """In how many goes the results came together."""
    return (
        "in one go"
        if run["sittings"] == 1
        else f"put together from {run['sittings']} goes at parts of it"
    )


def page(told: Told) -> str:
    """All of it."""
    run = told["run"]
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    lost = "\n".join(beaten(told)) or "Nowhere, in what is measured here."
    return f"""# Benchmarks: real data, real peers

Made by {"parts of " if absent(told) else ""}`make bench-peers` on {run["date"]}, {sat(run)} ({run["cores"]} cores; {versions}).
All numbers are in `benchmarks.json` beside this page.
The logs are not part of the package; `make bench-peers DATA=folder` says where they are.

{absent(told)}
## Where we lose

{lost}

## Prediction on real logs

15 % of the answers held out: random cells, each person's last ones, or all of some people. Lower log loss is better; standard errors take a
person's answers as one draw, and "behind ours" is a paired difference. Ours has its defaults everywhere (2PL or GRM;
`direction="free"` for the two sets of roll calls, whose items run both ways). Peers that do not learn a time scale get
0.3 of the median span, those that are slow take part up to {run["most"]:,} answers, and are
stopped after {run["patience"]:g} CPU s. Elo sees each answer when it has predicted it, in the order of time, but not held-out ones. BKT's
skill is the skill column, or the item where that is a skill. Static packages see the last of repeated answers.

{prediction(told)}

### What the default misses on learning platforms

Our forecasts of held-out answers in a logistic regression (learned from half of the people, judged on the others), beside facts about an
answer that the model does not have.

{missing(told)}

### Next answers of new learners

A fifth of the people held out, each of their answers (the first 300) predicted from those before. Logistic regression has item, skill and how often
the person answered anything, the skill and the item before.

{next_answers(told)}

## Truth of the posterior

Simulation-based calibration: data sets drawn from the model's own prior (60 people, 12 items of 2PL, 20 answers each; a level plus a
Matérn 3/2), one rank each, of one person's ability at a random time. Then small problems (12 people × 12 answers, 6 items) against long
runs of NUTS; evidence against importance sampling.

{truth(told)}

## Speed

CPU seconds of one thread. Warm: the best of three runs in a process, of more where they are short; cold: the first, with imports
and whatever compiles then.

{speed(told)}

## Growth

The default fit (priors learned, standard errors included), one thread, one thing changed at a time.

{growth(told)}
"""
