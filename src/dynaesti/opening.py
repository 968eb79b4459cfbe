"""Open whatever was saved."""

from collections.abc import Callable
from os import PathLike
from typing import Any

from dynaesti.curves import Curve, open_curve
from dynaesti.errors import InputError, StorageError
from dynaesti.storage import read


def load(path: str | PathLike[str], *, link: Any = None, mean: Callable[[Any], Any] | None = None) -> Curve:
    """Open a saved curve. `link` and `mean` are needed again where they were functions of the user's own."""
    if not isinstance(path, str | PathLike):
        raise InputError(f"path: expected a file name, got {path!r}")
    kind, header, arrays = read(path)
    if kind != "curve":
        raise StorageError(f"{path}: holds a {kind!r}, which this version cannot open")
    try:
        return open_curve(header, arrays, link, mean)
    except InputError as error:
        if str(error).startswith(("link:", "mean:")):
            raise
        raise StorageError(f"{path}: damaged, its data do not pass the checks ({error})") from error
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise StorageError(f"{path}: damaged, a part is missing or malformed ({type(error).__name__}: {error})") from error
