"""Options of an estimator of abilities, and what each of them may be.

Each option has one line in `CHECKS`. What depends on two options at once is a function:
`resolve_kernel` and `check_orientation`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from os import PathLike
from typing import Any

from dynaesti.core import finite_number, positive_number, whole_number
from dynaesti.data import check_free, parse_formula
from dynaesti.errors import InputError, option
from dynaesti.estimation.progress import OnIteration
from dynaesti.model import DEFAULT_KERNEL, RBF, BandwidthKernel, Kernel, named_kernel

Check = Callable[[Any, str], Any]  # (value, option's name) → the value in the form that is kept


# --- kinds of checks: one function and one sentence each ----------------------------------------


def one_of(*allowed: str | None) -> Check:
    """A check that allows a few values only."""

    def check(value: Any, name: str) -> Any:
        if value not in allowed:
            raise InputError(f"{name}: {value!r} is none of {', '.join(map(repr, allowed))}")
        return value

    return check


def expected(what: str, test: Callable[[Any], bool], shown: Callable[[Any], str] = repr) -> Check:
    """A check that allows what passes a test; its message says what is expected.

    `shown` turns the refused value into text for the message.
    """

    def check(value: Any, name: str) -> Any:
        if not test(value):
            raise InputError(f"{name}: expected {what}, got {shown(value)}")
        return value

    return check


def at_least(least: int) -> Check:
    """A check that allows whole numbers from `least` on."""
    return partial(whole_number, least=least)


def optional(check: Check) -> Check:
    """A check that allows None, and what another check allows."""
    return lambda value, name: None if value is None else check(value, name)


def _type_name(value: Any) -> str:
    return type(value).__name__


def _as_bool(value: Any, _: str) -> bool:
    return bool(value)


def mean_and_sd(value: Any, name: str) -> tuple[float, float]:
    """The mean and standard deviation of a population, checked."""
    if not isinstance(value, Sequence) or len(value) != 2:
        raise InputError(f"{name}: expected (mean, sd) of the abilities, got {value!r}")
    return finite_number(value[0], f"{name} mean"), positive_number(value[1], f"{name} sd")


def _population_kernel(value: Any, name: str) -> Kernel:
    """A kernel whose open bandwidths are all learned; other methods are for single curves only."""
    if not isinstance(value, Kernel):
        raise InputError(
            f"{name}: expected a kernel such as RBF() or its name, got {_type_name(value)}"
        )
    methods = [
        summand.bandwidth
        for summand in value.summands
        if isinstance(summand, BandwidthKernel) and isinstance(summand.bandwidth, str)
    ]
    if any(method != "learn" for method in methods):
        raise InputError(
            f"bandwidth: {methods[0]!r} picks for a single curve; for a population give a "
            f"number, inf or 'learn'"
        )
    return value


def _formula(value: Any, _: str) -> str:
    """A formula, whose terms are all allowed."""
    return parse_formula(value).text


# --- the options --------------------------------------------------------------------------------

# `unit`, `fixed`, `start` and `checkpoint` are checked where they are read, with the data
CHECKS: Mapping[str, Check] = {
    "kernel": _population_kernel,
    "scale": one_of("abilities", "items"),
    "direction": one_of("positive", "free"),
    "priors": one_of("weak", "hierarchical", None),
    "clock": one_of("calendar", "person"),
    "cohort": one_of("auto", "learn", None),
    "groups": optional(
        expected("the name of a column", lambda value: isinstance(value, str) and value != "")
    ),
    "effects": optional(_formula),
    "free": optional(check_free),
    "rare": at_least(1),
    "population": optional(mean_and_sd),
    "iterations": at_least(1),
    "tolerance": positive_number,
    "standard_errors": _as_bool,
    "threads": optional(at_least(1)),
    "progress": expected(
        "True, False or a function of an iteration",
        lambda value: isinstance(value, bool) or callable(value),
    ),
    "every": expected(
        "seconds between checkpoints",
        lambda value: isinstance(value, int | float) and value >= 0,
    ),
    "executor": optional(
        expected(
            "an executor such as DaskExecutor(client)",
            lambda value: hasattr(value, "run"),
            shown=_type_name,
        )
    ),
}

# People without whom a cohort is learned only where it is asked for: a few cannot tell their common
# curve from their own.
COHORT_PEOPLE = 10

# options that the result does not depend on
RUNTIME_OPTIONS = ("threads", "progress", "checkpoint", "every", "executor")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AbilityOptions:
    """Options of an estimator of abilities, checked; `DynAEsti` describes each of them.

    Raises
    ------
    InputError
        If an option is not what `CHECKS` allows, or does not suit another option.
    """

    model: Any
    kernel: Kernel
    scale: str
    direction: str
    orient: Mapping[str, Any] | None
    priors: str | None
    clock: str
    cohort: str | None
    groups: str | None
    effects: str | None
    free: Mapping[Any, Any] | None
    unit: str | None
    rare: int
    fixed: Any
    start: Any
    population: tuple[float, float] | None
    iterations: int
    tolerance: float
    standard_errors: bool
    threads: int | None
    progress: bool | OnIteration
    checkpoint: str | PathLike[str] | None
    every: float
    executor: Any

    def __post_init__(self) -> None:
        for name, check in CHECKS.items():
            object.__setattr__(self, name, check(getattr(self, name), name))
        check_orientation(self.orient, self.direction, self.model)
        if self.groups is not None and self.cohort is None:
            raise InputError(
                "groups: each group has its own curve of the cohort, which "
                f"{option('cohort', None)} leaves out; give one of both"
            )

    def learns_cohort(self, n_people: int) -> bool:
        """Whether the mean over time of a population of so many people is learned."""
        if self.cohort == "auto" and self.groups is None:
            is_open = not self.kernel.static and self.population is None
            return is_open and n_people >= COHORT_PEOPLE
        return self.cohort is not None

    def why_no_cohort(self, n_people: int) -> str:
        """Why no cohort is learned, where nobody asked for that; empty where somebody did."""
        if self.cohort is not None and not self.kernel.static and n_people < COHORT_PEOPLE:
            return (
                f"With fewer than {COHORT_PEOPLE} people the population's mean over time is not "
                f"learned, unless {option('cohort', 'learn')} asks for it."
            )
        return ""

    @staticmethod
    def names() -> set[str]:
        """Names of all options."""
        return {field.name for field in fields(AbilityOptions)}

    def as_dict(self) -> dict[str, Any]:
        """All options by name."""
        return {field.name: getattr(self, field.name) for field in fields(AbilityOptions)}


def resolve_kernel(kernel: Any, bandwidth: Any) -> Any:
    """The kernel that two options ask for: a kernel, its name, or the bandwidth of an RBF."""
    if kernel is not None and bandwidth is not None:
        raise InputError("bandwidth: the kernel owns it; give one of both")
    if bandwidth is not None:
        return RBF(bandwidth)
    if kernel is None:
        return named_kernel(DEFAULT_KERNEL)
    return named_kernel(kernel) if isinstance(kernel, str) else kernel


def check_orientation(orient: Any, direction: str, model: Any) -> None:
    """Refuse `orient` where the scale has only one direction, or where it names no single label."""
    if orient is None:
        return
    if direction != "free" and model != "NRM":
        raise InputError(
            "orient: it says which way up a scale with direction='free' goes; other scales "
            "have no choice"
        )
    if not isinstance(orient, Mapping) or set(orient) - {"item", "id"} or len(orient) != 1:
        raise InputError(
            "orient: give {'item': label} or {'id': label}: what lies on the upper side of "
            "the scale"
        )
