"""The exceptions and warnings a user may catch, and how their messages name options.

Everything raised on purpose derives from DynaestiError.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class DynaestiError(Exception):
    """Base class: the message says what is wrong, where, how many times, and what to do."""


class InputError(DynaestiError, ValueError):
    """Times, options or arrays that cannot be used as they are."""


class EmissionError(InputError):
    """An emission whose likelihood is impossible everywhere, not a number, or raised an error
    itself.
    """


class StorageError(DynaestiError, OSError):
    """A saved file that is missing, truncated, foreign, hostile or from a newer version."""


class MissingExtraError(DynaestiError, ImportError):
    """An optional package is needed for what was asked."""


class DynaestiWarning(UserWarning):
    """Base class of the warnings."""


class ConvergenceWarning(DynaestiWarning):
    """Grafting stopped before it settled; the result is the best found, and the fields say so."""


class BandwidthWarning(DynaestiWarning):
    """The best bandwidth lies at the edge of what these times can show."""


class ResponseError(InputError):
    """A table of responses that cannot be used as it is.

    A column missing, text where numbers belong, ids or times missing.
    """


class FileError(ResponseError, StorageError):
    """A file of answers that is not there, or is none."""


class HealthWarning(DynaestiWarning):
    """The data can be fitted, but something about them deserves a look."""


# --- options in messages: the library names them, the caller's language spells them

Spelling = Callable[[str, object], str | None]


class _NoValue:
    """Type of `NO_VALUE`: an option is named without a value."""


NO_VALUE = _NoValue()


def option(name: str, value: object = NO_VALUE, *, python: str | None = None) -> str:
    """Name an option in a message, as whoever reads the message has to write it.

    In Python that is ``unreadable='drop'``. A program that takes its options in another way says
    so by `spell_options`; the command line names a flag. The spelling is chosen
    when the message is composed, so errors, warnings, notes and summaries need no translation
    later. It holds for the whole process, because messages are composed in worker threads too.

    Parameters
    ----------
    name : str
        The option's name in Python.
    value : object, optional
        A value to suggest. Without it the option is only named.
    python : str, optional
        How Python spells it, where that is not ``name=value``: a method, or a whole call.

    Returns
    -------
    str
        The option for a place in a sentence.

    Examples
    --------
    >>> from dynaesti.errors import option
    >>> option("unreadable", "drop")
    "unreadable='drop'"
    >>> option("bandwidth", float("inf"))
    'bandwidth=inf'
    >>> option("iterations")
    'iterations'
    """
    spelled = None if _spelling is None else _spelling(name, value)
    if spelled is not None:
        return spelled
    if python is not None:
        return python
    return name if value is NO_VALUE else f"{name}={value!r}"


@contextmanager
def spell_options(spelling: Spelling) -> Iterator[None]:
    """Let messages name options in another way, until the block ends.

    Parameters
    ----------
    spelling : callable
        From an option's name and value (`NO_VALUE` for none) to its spelling; None where Python's
        shall stay.
    """
    global _spelling
    before = _spelling
    _spelling = spelling
    try:
        yield
    finally:
        _spelling = before


_spelling: Spelling | None = None
