"""State: what is known of one learner now, as a small value that is saved as bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np

from dynaesti.core import Array
from dynaesti.errors import InputError, StorageError
from dynaesti.inference import filter_time

MAGIC = b"dys1"  # and the version of the format
# magic, the scorer's fingerprint, number of answers, group, origin of the clock, and how many
# columns, codes of practice, and open ones follow
HEADER = struct.Struct("<4s8sIhdHII")
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
        head = HEADER.pack(
            MAGIC,
            self.fingerprint,
            self.answers,
            self.group,
            self.origin,
            len(self.personal),
            len(self.practice),
            len(self.open_practice),
        )
        counts = b"".join(_varints(_flat(self.practice, self.open_practice)))
        numbers = np.concatenate([self.numbers, self.personal]).astype("<f8").tobytes()
        body = head + numbers + counts
        return body + CHECKSUM.pack(crc32(body))


def _flat(practice: Mapping[int, int], open_practice: tuple[int, ...]) -> Iterator[int]:
    """Codes, as differences to the code before, each with its count; then the open ones."""
    before = 0
    for code in sorted(practice):
        yield code - before
        yield practice[code]
        before = code
    yield from open_practice


def _varints(values: Iterator[int]) -> Iterator[bytes]:
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
    least = HEADER.size + CHECKSUM.size
    whole = len(raw) >= least and raw[:4] == MAGIC
    if not whole or CHECKSUM.unpack(raw[-4:])[0] != crc32(raw[:-4]):
        raise StorageError(f"state: {len(raw):,} bytes that are damaged, or no learner's state")
    _, owner, answers, group, origin, personal, n_codes, n_open = HEADER.unpack_from(raw)
    if owner != fingerprint:
        raise InputError(
            "state: of another scorer than this one; start again from the learner's answers"
        )
    end = HEADER.size + 8 * (n_numbers + personal)
    if personal != n_personal or end > len(raw) - CHECKSUM.size:
        raise StorageError("state: damaged, its size does not fit the scorer")
    numbers = np.frombuffer(raw, "<f8", n_numbers + personal, HEADER.size).astype(np.float64)
    flat = list(_whole_numbers(raw[end : -CHECKSUM.size]))
    if len(flat) != 2 * n_codes + n_open:
        raise StorageError("state: damaged, its practice cannot be read")
    codes = np.cumsum(np.array(flat[: 2 * n_codes : 2], dtype=np.int64)).tolist()
    return State(
        numbers[:n_numbers],
        owner,
        answers,
        group,
        origin,
        tuple(numbers[n_numbers:].tolist()),
        dict(zip(codes, flat[1 : 2 * n_codes : 2], strict=True)),
        tuple(flat[2 * n_codes :]),
    )


def _whole_numbers(raw: bytes) -> Iterator[int]:
    """The inverse of `_varints`."""
    value = shift = 0
    for byte in raw:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0
