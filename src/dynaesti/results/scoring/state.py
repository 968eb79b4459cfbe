"""State: what is known of one learner now, as a small value that is saved as bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np

from dynaesti.core import Array
from dynaesti.errors import InputError, StorageError
from dynaesti.inference import filter_time

MAGIC = b"dys2"  # and the version of the format
HEADER = struct.Struct("<4s8sI")  # magic, the scorer's fingerprint, and the number of answers
CHECKSUM = struct.Struct("<I")


@dataclass(frozen=True, eq=False)
class State:
    """What is known of one learner now; made by a `Scorer`, and never changed.

    Parameters
    ----------
    numbers : array (n_numbers,)
        The filter's: see `start_filter`.
    fingerprint : bytes
        Of the scorer whose state it is.
    answers : int
        Number of answers taken in.
    group : int
        Number of the learner's group, −1 for the average.
    origin : float
        Where the learner's own clock starts, on the fit's axis; NaN before the first answer. 0 on
        the calendar.
    personal : tuple of float
        Values of the columns that belong to the person.
    practice : mapping of int to int
        How often each thing was practised before the open instant, by its code.
    open_practice : tuple of int
        Codes of what is practised in the open instant.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=12, items=5, per_person=12, seed=1).table
    >>> scorer = dy.DynAEsti("2PL").fit(table).scorer()
    >>> state = scorer.add(scorer.start(), 50.0, "i3", 1)
    >>> state.answers, len(state.to_bytes()) < 1024
    (1, True)
    >>> scorer.state(state.to_bytes()) == state
    True
    """

    numbers: Array
    fingerprint: bytes
    answers: int = 0
    group: int = -1
    origin: float = 0.0
    personal: tuple[float, ...] = ()
    practice: Mapping[int, int] = field(default_factory=dict)
    open_practice: tuple[int, ...] = ()

    @property
    def clock_time(self) -> float:
        """Time of the last answer on the fit's clock; NaN before the first."""
        return filter_time(self.numbers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and self.to_bytes() == other.to_bytes()

    def __hash__(self) -> int:
        return hash(self.to_bytes())

    def __repr__(self) -> str:
        return f"<State after {self.answers:,} answers, {len(self.to_bytes()):,} bytes>"

    def to_bytes(self) -> bytes:
        """The state as bytes, at most 1 KB for the kernels that fits mix by default.

        Where practice counts, about 4 bytes come on top for each item or level met.

        Returns
        -------
        bytes
            Read by `Scorer.state`.
        """
        origin = () if self.origin == 0.0 else (self.origin,)
        counts = (
            2 * (self.group + 1) + len(origin),
            len(self.personal),
            len(self.practice),
            len(self.open_practice),
        )
        numbers = np.concatenate([self.numbers, self.personal, origin]).astype("<f8").tobytes()
        whole = b"".join(_varints((*counts, *_flat(self.practice, self.open_practice))))
        body = HEADER.pack(MAGIC, self.fingerprint, self.answers) + whole + numbers
        return body + CHECKSUM.pack(crc32(body))


def _flat(practice: Mapping[int, int], open_practice: tuple[int, ...]) -> Iterator[int]:
    """Codes, as differences to the code before, each with its count; then the open ones."""
    before = 0
    for code in sorted(practice):
        yield code - before
        yield practice[code]
        before = code
    yield from open_practice


def _varints(values: Iterable[int]) -> Iterator[bytes]:
    """Whole numbers in groups of seven bits, the lowest first; the last one has no high bit."""
    for value in values:
        while value > 127:
            yield bytes((value & 127 | 128,))
            value >>= 7
        yield bytes((value,))


def read_state(data: bytes, fingerprint: bytes, n_numbers: int, n_personal: int) -> State:
    """The state that `State.to_bytes` wrote, checked.

    Raises
    ------
    StorageError
        If the bytes are damaged or written by a later version.
    InputError
        If they are no bytes, or of another scorer.
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise InputError(f"state: expected bytes, got {type(data).__name__}")
    raw = bytes(data)
    if raw[:3] == MAGIC[:3] and raw[3:4] > MAGIC[3:]:
        raise StorageError("state: written by a newer dynaesti; upgrade dynaesti to read it")
    if raw[:3] == MAGIC[:3] and b"0" < raw[3:4] < MAGIC[3:]:
        raise StorageError(
            "state: written by an earlier dynaesti; start again from the learner's answers"
        )
    least = HEADER.size + CHECKSUM.size
    whole = len(raw) >= least and raw[:4] == MAGIC
    if not whole or CHECKSUM.unpack(raw[-4:])[0] != crc32(raw[:-4]):
        raise StorageError(f"state: {len(raw):,} bytes that are damaged, or no learner's state")
    _, owner, answers = HEADER.unpack_from(raw)
    if owner != fingerprint:
        raise InputError(
            "state: of another scorer than this one; start again from the learner's answers"
        )
    (group, personal, n_codes, n_open), at = _whole_numbers(raw, HEADER.size, 4)
    flat, at = _whole_numbers(raw, at, 2 * n_codes + n_open)
    has_origin = group % 2
    count = n_numbers + n_personal + has_origin
    if personal != n_personal or at + 8 * count != len(raw) - CHECKSUM.size:
        raise StorageError("state: damaged, its size does not fit the scorer")
    numbers = np.frombuffer(raw, "<f8", count, at).astype(np.float64)
    codes = np.cumsum(np.array(flat[: 2 * n_codes : 2], dtype=np.int64)).tolist()
    return State(
        numbers[:n_numbers],
        owner,
        answers,
        group // 2 - 1,
        float(numbers[-1]) if has_origin else 0.0,
        tuple(numbers[n_numbers : n_numbers + n_personal].tolist()),
        dict(zip(codes, flat[1 : 2 * n_codes : 2], strict=True)),
        tuple(flat[2 * n_codes :]),
    )


def _whole_numbers(raw: bytes, at: int, count: int) -> tuple[list[int], int]:
    """The inverse of `_varints`: so many whole numbers from a place on, and where they end."""
    out: list[int] = []
    value = shift = 0
    while len(out) < count:
        if at >= len(raw) - CHECKSUM.size:
            raise StorageError("state: damaged, its counts cannot be read")
        value |= (raw[at] & 127) << shift
        shift += 7
        if raw[at] < 128:
            out.append(value)
            value = shift = 0
        at += 1
    return out, at
