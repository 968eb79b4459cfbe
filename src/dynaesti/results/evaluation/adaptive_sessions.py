"""Simulated adaptive sessions: what policies of choosing items find out, and at what cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaesti.core import Array, as_rng, whole_number
from dynaesti.data import make_frame
from dynaesti.errors import InputError
from dynaesti.inference import check_level
from dynaesti.results.clock import from_clock, to_clock
from dynaesti.results.drawn_responses import draw_responses
from dynaesti.results.scoring.answers import AnswerCoder, counted
from dynaesti.results.scoring.scorer import Scorer
from dynaesti.results.scoring.state import State
from dynaesti.tables import as_frame

if TYPE_CHECKING:
    from dynaesti.results.fit_base import FitBase

Chooser = Callable[[State, list[Any]], Any]
POLICIES: Mapping[str, Mapping[str, Any] | str] = {
    "most informative": {},
    "right 4 times in 5": {"target": 0.8},
    "at random": "random",
}


@dataclass
class _Learner:
    """One simulated learner in the middle of a session."""

    number: int
    state: State
    deviation: Array  # (n_sessions,) from the cohort, in standard deviations of ability
    noise: Array  # (n_sessions,) of the instant, which answers see and ability is without
    given: list[Any] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    done: bool = False


@dataclass(frozen=True)
class _Sessions:
    """What all policies share: the scorer, when sessions take place, and chance."""

    scorer: Scorer
    start: State
    coder: AnswerCoder
    clock: Array  # (n_sessions,)
    times: list[Any]  # as data have them
    asked_at: list[Any]  # as questions have them
    columns: Mapping[str, Any]
    seed: int
    ends: Mapping[Any, tuple[float, float]]  # least and most response of an item


def adaptive(
    fit: FitBase | Scorer,
    policies: Mapping[str, Mapping[str, Any] | str | Chooser] | None = None,
    *,
    learners: int = 200,
    after: Sequence[int] = (5, 10, 20),
    times: Any = None,
    level: float = 0.7,
    seed: Any = 0,
    **columns: Any,
) -> Any:
    """Compare policies of choosing the next item in simulated sessions.

    Learners are drawn from the fit's population, their answers from its items. Every policy meets
    the same learners, who answer the same item alike. No item is given twice.

    Parameters
    ----------
    fit : Fit, ShardedFit or Scorer
    policies : mapping, optional
        By name: options of `Scorer.next_item`, such as ``{"target": 0.8, "stop": 0.3}``;
        ``"random"``; or a function of a state and the items given so far that returns an item, or
        None to stop. Default: the most informative item, one with a chance of 0.8, and a random
        one.
    learners : int, default 200
    after : sequence of int, default (5, 10, 20)
        Numbers of items after which policies are compared; the largest ends the sessions.
    times : time or times, optional
        When sessions take place: items are shared evenly among them, and abilities move on between
        them. Default: one session, at the end of what the fit has seen.
    level : float, default 0.7
        Probability of the bands whose cover is told.
    seed : int, default 0
    **columns
        Columns of people and answers that the fit's effects need, alike for everyone.

    Returns
    -------
    frame
        A row a policy and number of items: policy, after, answers (mean number, fewer where a
        policy stops), rmse and bias of mean ability about the truth, sd (what the states say),
        cover (share of learners within the band), score (mean response, as a share of what is
        possible; missing for responses without a most), most_given (largest share of learners who
        got the same item), items (number of items given to anyone).

    Raises
    ------
    InputError
        If a policy or a column is unknown, or there are fewer items than a session is to have.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=40, items=30, per_person=30, seed=1).table
    >>> found = dy.evaluation.adaptive(dy.DynAEsti("2PL").fit(table), learners=40, after=[10])
    >>> best, _, random = found["rmse"].tolist()
    >>> best < random
    True
    """
    scorer = fit if isinstance(fit, Scorer) else fit.scorer()
    ends = sorted({whole_number(one, "after", 1) for one in after})
    learners = whole_number(learners, "learners", 2)
    check_level(level)
    if not ends or ends[-1] > scorer.item_labels.size:
        raise InputError(f"after: {list(after)}, and there are {scorer.item_labels.size} items")
    rng = as_rng(seed)
    sessions = _sessions(scorer, times, columns, int(rng.integers(2**31)))
    truths = _truths(sessions, learners, rng)
    policies = POLICIES if policies is None else policies
    choosers = {name: _chooser(sessions, name, policy) for name, policy in policies.items()}
    rows: list[dict[str, Any]] = []
    for name, choose in choosers.items():
        class_ = [
            _Learner(k, sessions.start, *truth) for k, truth in enumerate(zip(*truths, strict=True))
        ]
        for position in range(ends[-1]):
            session = position * sessions.clock.size // ends[-1]
            _ask(sessions, class_, session, choose)
            if position + 1 in ends:
                told = _told(sessions, class_, session, level)
                rows.append({"policy": name, "after": position + 1, **told})
    return make_frame({key: [row[key] for row in rows] for key in rows[0]}, scorer.template.frame)


def _sessions(scorer: Scorer, times: Any, columns: Mapping[str, Any], seed: int) -> _Sessions:
    """Sessions at times, on the clock and as data have them."""
    template = scorer.template
    cohort = scorer.model.priors.cohort
    clock = np.array([0.0 if cohort is None else cohort.basis.span])
    if times is not None:
        clock = np.sort(to_clock(template, times if hasattr(times, "__len__") else [times]))
    if template.clock == "person":
        clock = clock - clock[0]  # which the first answer of each sets to 0
    data = template.axis.restore(clock)
    asked = from_clock(template, clock)
    coder = AnswerCoder(scorer.model, scorer.item_labels, template)
    of_answers = {
        name: value
        for name, value in columns.items()
        if name in coder.column_kinds and name not in scorer.personal_columns
    }
    start = scorer.start(**{k: v for k, v in columns.items() if k not in of_answers})
    return _Sessions(
        scorer,
        start,
        coder,
        clock,
        [one if template.axis.stamps else float(one) for one in data],
        [one.item() if isinstance(one, np.floating) else one for one in asked],
        of_answers,
        seed,
        _ends_of_responses(scorer),
    )


def _ends_of_responses(scorer: Scorer) -> dict[Any, tuple[float, float]]:
    """Least and most response of each item; NaN where responses have no most."""
    labels = scorer.item_labels.tolist()
    out = dict.fromkeys(labels, (np.nan, np.nan))
    for block in scorer.model.bank.blocks:
        if block.model.categorical:
            for item, values in zip(block.items.tolist(), block.values, strict=True):
                out[labels[item]] = (float(values.min()), float(values.max()))
    return out


def _truths(sessions: _Sessions, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Deviations from the cohort and noise of instants, (n_learners, n_sessions) each."""
    model = sessions.scorer.model
    kernel = rng.choice(len(model.kernels), size=n, p=model.population / model.population.sum())
    normal = rng.standard_normal((n, sessions.clock.size))
    noise = rng.standard_normal(normal.shape)
    deviation = np.empty_like(normal)
    for k, one in enumerate(model.kernels):
        mine = kernel == k
        covariance = one.cov(sessions.clock, sessions.clock) + 1e-10 * np.eye(sessions.clock.size)
        deviation[mine] = normal[mine] @ np.linalg.cholesky(covariance).T
        noise[mine] *= np.sqrt(one.nugget_variance)
    return deviation, noise


def _chooser(sessions: _Sessions, name: str, policy: Any) -> Callable[[_Learner, int], Any]:
    """What chooses an item for a learner at a session; None where that one is done."""
    labels = sessions.scorer.item_labels.tolist()
    if policy == "random":

        def random(one: _Learner, _: int) -> Any:
            order = np.random.default_rng([sessions.seed, one.number]).permutation(len(labels))
            return labels[int(order[len(one.given)])]

        return random
    if callable(policy):
        return lambda one, _: policy(one.state, list(one.given))
    if not isinstance(policy, Mapping):
        raise InputError(
            f"policies: {name!r} is {policy!r}; give options of next_item, 'random', or a function"
        )
    rng = np.random.default_rng(sessions.seed)

    def by_options(one: _Learner, session: int) -> Any:
        options: dict[str, Any] = {"seed": rng, **policy}
        if options.get("content") is not None:
            options["content"] = replace(options["content"], given=list(one.given))
        exclude = [*options.pop("exclude", ()), *one.given]
        at = sessions.asked_at[session]
        found = sessions.scorer.next_item(one.state, at, exclude=exclude, **options)
        return next(iter(as_frame(found).to_dict()["item"]), None)

    return by_options


def _ask(
    sessions: _Sessions,
    class_: Sequence[_Learner],
    session: int,
    choose: Callable[[_Learner, int], Any],
) -> None:
    """Give everyone one item more, and take in the answers."""
    asked = []
    for one in class_:
        item = None if one.done else choose(one, session)
        one.done = item is None
        if not one.done:
            asked.append((one, item, _answer(sessions, one, session, item)))
    found = sessions.scorer.add_each(
        [one.state for one, _, _ in asked],
        [sessions.times[session]] * len(asked),
        [item for _, item, _ in asked],
        [resp for _, _, resp in asked],
        columns=[sessions.columns] * len(asked),
    )
    for (one, item, resp), state in zip(asked, found, strict=True):
        one.state = state
        one.given.append(item)
        low, high = sessions.ends[item]
        one.shares.append((resp - low) / (high - low) if high > low else np.nan)


def _answer(sessions: _Sessions, one: _Learner, session: int, item: Any) -> float:
    """How a learner answers an item: alike under every policy."""
    now = float(sessions.clock[session])
    state = one.state
    practice = state.practice
    if now > state.clock_time:
        practice = counted(practice, state.open_practice)
    number = sessions.coder.item(item, now, sessions.columns)
    seen, _ = sessions.coder.seen(state, now, number, sessions.columns, practice)
    z = np.array([seen + one.deviation[session] + one.noise[session]])
    rng = np.random.default_rng([sessions.seed, one.number, number, session])
    return float(draw_responses(sessions.scorer.model.bank, np.array([number]), z, rng)[0])


def _told(
    sessions: _Sessions, class_: Sequence[_Learner], session: int, level: float
) -> dict[str, Any]:
    """What is known of everyone now, beside the truth."""
    scorer = sessions.scorer
    at = sessions.asked_at[session]
    found = scorer.ability([one.state for one in class_], at, level=level)
    gain = scorer.scale.gain * scorer.model.bank.ability_scale.scale
    expected = scorer.ability(sessions.start, at).mean  # of someone of whom nothing is known
    truth = expected + gain * np.array([one.deviation[session] for one in class_])
    error = np.asarray(found.mean) - truth
    met = [item for one in class_ for item in one.given]
    counts = np.unique([str(item) for item in met], return_counts=True)[1] if met else np.zeros(1)
    shares = [share for one in class_ for share in one.shares]
    return {
        "answers": len(met) / len(class_),
        "rmse": float(np.sqrt((error**2).mean())),
        "bias": float(error.mean()),
        "sd": float(np.mean(found.sd)),
        "cover": float(((truth >= found.lower) & (truth <= found.upper)).mean()),
        "score": float(np.mean(shares)) if shares else float("nan"),
        "most_given": float(counts.max()) / len(class_),
        "items": int(counts.size if met else 0),
    }
