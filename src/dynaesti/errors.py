"""Exceptions and warnings that a user may catch, and how their messages name options.

Everything that the package raises on purpose derives from `DynaestiError`, every warning from
`DynaestiWarning`. Each error also derives from the built-in exception that Python users expect:
`ValueError` for unusable input, `OSError` for files, `ImportError` for missing packages.
"""

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class DynaestiError(Exception):
    """Base class of all errors of the package.

    The message says what is wrong, where, how many times, and what to do. Catch this class to
    handle every deliberate error; anything else that is raised is a defect of the package.

    Parameters
    ----------
    message : str
        What is wrong, where, and what to do.

    Examples
    --------
    >>> import dynaesti as dy
    >>> try:
    ...     dy.RBF(bandwidth=-1.0)
    ... except dy.DynaestiError as error:
    ...     print(type(error).__name__)
    InputError
    """


class InputError(DynaestiError, ValueError):
    """Times, options or arrays that cannot be used as they are.

    Raised before anything is computed. Correct the argument that the message names first.

    Parameters
    ----------
    message : str
        What is wrong, where, and what to do.

    Examples
    --------
    >>> import dynaesti as dy
    >>> try:
    ...     dy.DynAEsti("2PL", tolerance=-1)
    ... except dy.InputError as error:
    ...     print(str(error).partition(":")[0])
    tolerance
    """


class NeedsFunctionError(InputError):
    """A saved curve or fit rests on a function of the user's own, which no file can hold.

    Pass it again to `load`.

    Parameters
    ----------
    message : str
        What is wrong, where, and what to do.
    """


class LateAnswer(InputError):  # noqa: N818  it names what came
    """An answer from before the last one that a learner's state has taken in.

    A state knows no history. Start again from the answers in the order of their times.

    Parameters
    ----------
    message : str
        What is wrong, where, and what to do.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=12, items=5, per_person=12, seed=1).table
    >>> scorer = dy.DynAEsti("2PL").fit(table).scorer()
    >>> state = scorer.add(scorer.start(), 50.0, "i3", 1)
    >>> try:
    ...     scorer.add(state, 49.0, "i2", 1)
    ... except dy.LateAnswer:
    ...     print("late")
    late
    """


class EmissionError(InputError):
    """An emission whose likelihood cannot be used.

    Raised when a likelihood is zero for every value of the curve, is not a number, or when a user's
    likelihood function fails itself. The message names the emission by its position. Correct the
    observation, or let its likelihood be positive somewhere.

    Parameters
    ----------
    message : str
        What is wrong, where, and what to do.

    Examples
    --------
    >>> import dynaesti as dy
    >>> never = float("-inf")
    >>> try:
    ...     dy.Table([0.1, 0.2, 0.3, 0.4], [never, never, never, never])
    ... except dy.EmissionError:
    ...     print("refused")
    refused
    """


class StorageError(DynaestiError, OSError):
    """A file or folder that cannot be read or written.

    Raised when a saved fit, a shard or a run is missing, truncated, changed, not from this package,
    or written by a newer version. Look at the path in the message; where the version is the reason,
    upgrade the package.

    Parameters
    ----------
    message : str
        What is wrong, where, and what to do.

    Examples
    --------
    >>> import dynaesti as dy
    >>> try:
    ...     dy.load("no such file")
    ... except dy.StorageError:
    ...     print("not there")
    not there
    """


class MissingExtraError(DynaestiError, ImportError):
    """An optional package that is needed but not installed.

    Raised by plots, reports in PDF, Parquet files, data frames, remote folders and Dask. Install
    the extra that the message names, such as ``pip install 'dynaesti[scale]'``.

    Parameters
    ----------
    message : str
        What is wrong, where, and what to do.

    Examples
    --------
    >>> import dynaesti as dy
    >>> error = dy.MissingExtraError("needs matplotlib: pip install 'dynaesti[plot]'")
    >>> isinstance(error, ImportError), isinstance(error, ValueError)
    (True, False)
    """


class ResponseError(InputError):
    """A table of responses that cannot be used as it is.

    Raised when a column is missing, when text stands where numbers belong, when ids or times are
    missing, or when a response is outside what its item model allows. Correct the table, or name
    its columns in the call.

    Parameters
    ----------
    message : str
        What is wrong, where, and what to do.

    Examples
    --------
    >>> import dynaesti as dy
    >>> try:
    ...     dy.DynAEsti("2PL").fit({"id": [1, 2], "item": ["x", "y"]})
    ... except dy.ResponseError:
    ...     print("no responses")
    no responses
    """


class MissingColumnError(ResponseError):
    """A table without a column that was named, or that every table of responses needs.

    Parameters
    ----------
    message : str
        What is wrong, where, and what to do.
    """


class FileError(ResponseError, StorageError):
    """A file of responses that is missing, is a folder, or cannot be opened.

    It is both a `ResponseError` and a `StorageError`. Correct the path in the message.

    Parameters
    ----------
    message : str
        What is wrong, where, and what to do.

    Examples
    --------
    >>> import dynaesti as dy
    >>> issubclass(dy.errors.FileError, OSError)
    True
    """


class DynaestiWarning(UserWarning):
    """Base class of all warnings of the package.

    The result is returned all the same. Turn warnings into errors with
    ``warnings.simplefilter("error", dy.DynaestiWarning)``.

    Parameters
    ----------
    message : str
        What is wrong, where, and what to do.

    Examples
    --------
    >>> import dynaesti as dy
    >>> issubclass(dy.ConvergenceWarning, dy.DynaestiWarning)
    True
    """


class ConvergenceWarning(DynaestiWarning):
    """An iteration that stopped before it converged.

    Given by fits and updates when expectation propagation or EM ran out of iterations. The result
    is the best one found, and its fields say what has not converged. Allow more iterations, or
    audit the curve.

    Parameters
    ----------
    message : str
        What is wrong, where, and what to do.

    Examples
    --------
    >>> import warnings
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=12, items=3, per_person=8, seed=1).table
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     fit = dy.DynAEsti("2PL", iterations=1, standard_errors=False).fit(table)
    >>> any(issubclass(one.category, dy.ConvergenceWarning) for one in caught), fit.converged
    (True, False)
    """


class BandwidthWarning(DynaestiWarning):
    """A learned bandwidth at the edge of what the times can show.

    Given when the best bandwidth is the shortest or the longest one tried, so that the data do not
    determine it. Give a bandwidth, widen the range, or collect denser or longer series.

    Parameters
    ----------
    message : str
        What is wrong, where, and what to do.

    Examples
    --------
    >>> import warnings
    >>> import dynaesti as dy
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", dy.BandwidthWarning)  # where that is no surprise
    ...     curve = dy.CurvFiFE().fit([1, 2, 3, 4], dy.Bernoulli([0, 1, 0, 1]))
    """


class HealthWarning(DynaestiWarning):
    """Data that can be fitted but need attention.

    Given for repeated responses, items that nearly everybody answers alike, and other findings of
    the data checks. Read what the message found, and correct the data where it is a mistake.

    Parameters
    ----------
    message : str
        What is wrong, where, and what to do.

    Examples
    --------
    >>> import dynaesti as dy
    >>> issubclass(dy.HealthWarning, UserWarning)
    True
    """


def warn_user(message: str, category: type[DynaestiWarning]) -> None:
    """Warn at the line of the caller's own code that led here, however deep in the package this is.

    Parameters
    ----------
    message : str
    category : type of DynaestiWarning
    """
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  what `warnings` itself uses
    level = 2
    while frame is not None and _is_inside(frame):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


def _is_inside(frame: FrameType) -> bool:
    """Whether a frame belongs to the package, or to the decorators around its functions."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in ("dynaesti", "contextlib")


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


# --- notices: what whoever waits should know, and a program should not hear


def notify(sentence: str) -> None:
    """Say something to whoever waits: a console, a notebook, the command line.

    Programs that use the library hear nothing, unless they ask by `notices_to`.

    Parameters
    ----------
    sentence : str
    """
    if _say is not None:
        _say(sentence)
    elif hasattr(sys, "ps1"):  # a console or a notebook
        print(sentence, file=sys.stderr, flush=True)  # noqa: T201  nobody else would tell


@contextmanager
def notices_to(say: Callable[[str], None]) -> Iterator[None]:
    """Send notices to a function, until the block ends.

    Parameters
    ----------
    say : callable
        Takes a sentence.
    """
    global _say
    before = _say
    _say = say
    try:
        yield
    finally:
        _say = before


_say: Callable[[str], None] | None = None
