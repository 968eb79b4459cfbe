"""Data drawn for the tests: polls, curves, classrooms, item parameters."""

import numpy as np
import pandas as pd
from scipy.special import expit, ndtr

import dynaesti as dy
from dynaesti.core import single_blas_thread
from dynaesti.data.responses import Responses
from dynaesti.estimation.coding import build_coding, resolve_item_models
from dynaesti.estimation.response_counts import count_responses
from dynaesti.estimation.site_layout import build_people_sites
from dynaesti.estimation.start_values import build_bank
from dynaesti.model.items.registry import item_model
from dynaesti.model.simulate import curves, responses
from support.oracles import rbf

EVIL, ODD = "<script>alert(1)</script>", "Ünï=1+1"  # names that a page must show as text


def polling(seed: int, n: int = 100):
    """(days in [0, 1], true share, votes) of the paper's polling problem."""
    x = np.linspace(0, 1, n)
    truth = 0.28 * np.cos(6.2 * x + 1.4) + 0.25 * np.sin(9.7 * x) + 0.45
    return x, truth, (np.random.default_rng(seed).random(n) < truth).astype(float)


@single_blas_thread()  # two processes of tests on two cores would wait for each other's threads
def draw_curve(rng, x, h):
    """One curve from a unit RBF prior."""
    if np.isinf(h):
        return np.full(x.size, rng.normal())
    values, vectors = np.linalg.eigh(rbf(x, x, h))
    return (vectors * np.sqrt(np.maximum(values, 0))) @ rng.normal(size=x.size)


def hard_case(a=8.0, b=1.0, c=0.5, seed=3, n=500):
    """Times and answers to steep items with guessing, where a Gaussian is a poor posterior."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0, 1, n)
    theta = draw_curve(rng, x, 0.2)
    right = (rng.random(n) < c + (1 - c) / (1 + np.exp(-a * (theta - b)))).astype(int)
    return x, dy.ItemResponses(right, "3PL", a=a, b=b, c=c)


def classroom(people=60, items=12, answers=30, seed=0, model="2PL", bandwidth=0.4, truth=False):
    """A long table of answers by people whose abilities move; the truth behind it on request."""
    rng = np.random.default_rng(seed)
    grid = np.linspace(0, 1, 101)
    ability = curves(grid, bandwidth, people, seed=rng)
    a, b = np.exp(rng.normal(0, 0.3, items)), rng.normal(0, 1, items)
    rows = []
    for p in range(people):
        t = np.sort(rng.uniform(0, 1, answers))
        item = rng.integers(0, items, answers)
        theta = np.interp(t, grid, ability[p])
        u = a[item] * (theta - b[item])
        if model == "2PL":
            y = rng.uniform(size=answers) < expit(u)
        elif model == "GRM":
            y = (rng.logistic(size=answers) < u + 1).astype(int) + (
                rng.logistic(size=answers) < u - 1
            )
        elif model == "poisson":
            y = rng.poisson(np.exp(0.5 * u))
        elif model == "gaussian":
            y = u + rng.normal(0, 0.7, answers)
        else:
            y = np.clip(rng.beta(6 * expit(u), 6 * expit(-u)), 1e-3, 1 - 1e-3)
        rows.append(
            pd.DataFrame(
                {
                    "id": f"p{p:03d}",
                    "item": [f"i{k:02d}" for k in item],
                    "resp": np.asarray(y) * 1.0,
                    "date": t,
                }
            )
        )
    table = pd.concat(rows, ignore_index=True)
    return (table, {"a": a, "b": b, "ability": ability, "grid": grid}) if truth else table


def classroom_of_odd_names():
    """Answers by people, and to an item, whose names look like markup or formulas."""
    table = classroom(14, 6, 25)
    names = {"p000": EVIL, "p001": ODD, "p002": "</script><b>", "p003": "=cmd()"}
    table["id"] = table["id"].replace(names)
    table["item"] = table["item"].replace({"i00": EVIL})
    return table


def shuffled_classroom(people=150, model="2PL", **changes):
    """Answers to 8 items in any order, some of them at one instant."""
    table = classroom(people, 8, 25, model=model, **changes)
    table.loc[::7, "date"] = table.loc[::7, "date"].round(1)  # some answers share an instant
    return table.sample(frac=1.0, random_state=3)


def classroom_with_new_items(model="2PL", people=150, seed=1, **options):
    """Answers to most items, and later ones in which four items are new.

    With all of them together.
    """
    table = pd.DataFrame(
        responses(people, 20, 50, model=model, seed=seed, **options).table
    ).sort_values(["id", "date"], ignore_index=True)
    names = sorted(table["item"].unique())
    later = table["date"] > table["date"].quantile(0.6)
    old = table[~later & ~table["item"].isin(names[-4:])]
    return old, table[later], pd.concat([old, table[later]]), names[-4:]


def parts(table, model="2PL", priors="weak", rare=1):
    """What a fit begins with: responses, their coding, items at their start and the sites."""
    responses = Responses.read(table)
    models = resolve_item_models(model, responses.items, None, False)
    response_counts = count_responses(responses, models)
    coding = build_coding(responses.items, models, response_counts, rare)
    bank = build_bank(responses.items, coding, response_counts, priors, {}, {})
    return responses, coding, bank, build_people_sites(responses, coding, bank)


def draw_items(name, signed, size, items=3):
    """A model, and unconstrained parameters of some items: (model, (items, parameters))."""
    model = item_model(name, signed)
    return model, np.random.default_rng(0).normal(0, 0.5, (items, len(model.parameter_names(size))))


def examinees(
    people, items, per_person, *, dif=0.0, leak=0.0, slope=0.0, impact=0.0, odd_items=1, seed=0
):
    """Answers over 100 days of people in the groups a and b, with items that are odd.

    The first `odd_items` items are easier by `dif` for group b, with a log slope larger by
    `slope`; the one after them is easier by `leak` in the second half. Group b is better by
    `impact`.
    """
    rng = np.random.default_rng(seed)
    t = np.sort(rng.uniform(0, 100, (people, per_person)), axis=1)
    group = np.arange(people)[:, None] % 2
    grid = np.linspace(0, 100, 41)
    moving = np.sqrt(0.5) * curves(grid, 25.0, people, seed=rng)
    theta = np.array([np.interp(t[i], grid, moving[i]) for i in range(people)])
    theta += np.sqrt(0.5) * rng.standard_normal((people, 1)) + impact * (group - 0.5)
    item = rng.integers(0, items, t.shape)
    b = np.linspace(-1, 1, items)
    odd = item < odd_items
    a = np.exp(slope * odd * group)
    easier = dif * odd * group + leak * (item == odd_items) * (t > 50)
    right = expit(1.2 * a * (theta + easier - b[item]))
    return pd.DataFrame(
        {
            "id": np.repeat([f"p{i:03d}" for i in range(people)], per_person),
            "item": [f"i{k}" for k in item.ravel()],
            "resp": (rng.random(t.size) < right.ravel()).astype(int),
            "date": t.ravel(),
            "group": np.repeat(np.where(group[:, 0], "b", "a"), per_person),
        }
    )


def house_polls(n=40, seed=0, house_sd=0.15, noise=0.1, trials=800):
    """Polls of three houses, some on the same day, which differ by more than their sizes."""
    rng = np.random.default_rng(seed)
    t = np.sort(rng.integers(0, 30, n)).astype(float)
    house = rng.integers(0, 3, n)
    effect = np.array([0.2, -0.1, -0.1]) * house_sd / 0.15
    z = 0.3 * np.sin(t / 6) + effect[house] + noise * rng.normal(size=n)
    yes = rng.binomial(trials, ndtr(z))
    return (
        t,
        dy.Binomial(yes, trials),
        {"house": np.array(["A", "B", "C"])[house], "size": rng.normal(size=n)},
    )


def people_with_columns(seed=5):
    """Answers with a number and a category of people, and the rater of each answer."""
    drawn = pd.DataFrame(dy.simulate.responses(60, 8, 14, growth=1.0, seed=seed).table)
    rng = np.random.default_rng(seed)
    number = drawn["id"].str[1:].astype(int)
    drawn["age"] = 20 + number * 7 % 40
    drawn["lang"] = np.array(["it", "de", "fr"])[number % 3]
    drawn["rater"] = rng.integers(0, 5, len(drawn))
    return drawn
