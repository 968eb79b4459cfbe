"""Rows of the service's tables: answers as they are kept, and people with their last state."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One answer of the log.

    Parameters
    ----------
    id, item : str
    resp : float
    time : float
        Numbers as they come; timestamps as microseconds since 1970, which floats hold exactly.
    key : str
        The sender's, or one that was made up; unique among the person's answers.
    columns : str or None
        What else came with it, as JSON.
    seq : int
        Number in the log; 0 before it is there.
    """

    id: str
    item: str
    resp: float
    time: float
    key: str
    columns: str | None = None
    seq: int = 0

    @property
    def order(self) -> tuple[float, str]:
        """By what a person's answers are ordered."""
        return self.time, self.key


@dataclass(slots=True)
class PersonRow:
    """One person: how far the log goes, and the state after it under one scorer.

    The state is a cache. It holds only if `scorer` is the one that is served; without bytes it is
    made anew from the log.
    """

    id: str
    total: int = 0  # answers in the log
    scorer: int = 0
    state: bytes | None = None
    answers: int = 0  # of them in the state
    time: float | None = None  # of the last one in the state, with its key
    key: str | None = None
    mean: float | None = None
    sd: float | None = None
    lower: float | None = None
    upper: float | None = None

    @property
    def order(self) -> tuple[float, str] | None:
        """Place of the last answer that the state has taken in."""
        return None if self.time is None or self.key is None else (self.time, self.key)


COLUMNS_OF_PERSON = tuple(PersonRow.__slots__)
