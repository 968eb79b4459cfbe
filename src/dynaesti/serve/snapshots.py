"""Earlier states of people, from which late answers are put in their place."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from dynaesti.results import State
from dynaesti.serve.rows import AnswerRow

PEOPLE = 50_000  # whose earlier states are kept, those who answered last
APART = 16  # answers between a person's two snapshots, at least


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A state that had taken in the whole log of a person, as that was then.

    Parameters
    ----------
    scorer : int
    order : (float, str)
        Place of the last answer.
    state : State
    """

    scorer: int
    order: tuple[float, str]
    state: State

    @property
    def total(self) -> int:
        """Number of answers in the log then."""
        return self.state.answers

    def begins(self, log: Sequence[AnswerRow]) -> bool:
        """Whether a person's log, in its order, begins with what this state has taken in.

        Nothing is ever taken from a log. So if as many answers as then lie before that place,
        they are the same ones, whoever has written to the log since.
        """
        return len(log) >= self.total and log[self.total - 1].order == self.order


class Snapshots:
    """Two earlier states of each person, as this process met them; a cache, used by one thread."""

    def __init__(self) -> None:
        self._of: OrderedDict[str, tuple[Snapshot, ...]] = OrderedDict()

    def note(self, id: str, snapshot: Snapshot) -> None:
        """Note a state to which further answers come now."""
        kept = self._of.pop(id, ())
        if kept and kept[-1].scorer != snapshot.scorer:
            kept = ()
        if not kept or snapshot.total >= kept[-1].total + APART:
            kept = (*kept[-1:], snapshot)
        self._of[id] = kept
        if len(self._of) > PEOPLE:
            self._of.popitem(last=False)

    def find(self, id: str, scorer: int, log: Sequence[AnswerRow]) -> Snapshot | None:
        """The latest state with which a person's log begins; None where there is none."""
        for one in reversed(self._of.get(id, ())):
            if one.scorer == scorer and one.begins(log):
                return one
        return None
