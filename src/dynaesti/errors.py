"""The exceptions and warnings a user may catch.

Everything raised on purpose derives from DynaestiError.
"""


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


class MissingColumnError(ResponseError):
    """A table without a column that was named, or that every table of responses needs."""


class FileError(ResponseError, StorageError):
    """A file of answers that is not there, or is none."""


class HealthWarning(DynaestiWarning):
    """The data can be fitted, but something about them deserves a look."""
