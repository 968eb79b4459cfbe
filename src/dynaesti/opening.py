"""Saving fits, and opening whatever was saved."""

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any

from dynaesti.curves import Curve, open_curve
from dynaesti.errors import InputError, StorageError
from dynaesti.fitfile import read_fit
from dynaesti.items import ItemModel
from dynaesti.results import Fit
from dynaesti.storage import read


def load(path: str | PathLike[str], *, link: Any = None, mean: Callable[[Any], Any] | None = None,
         models: Mapping[str, ItemModel] | None = None) -> Curve | Fit:
    """Open a saved curve or fit. `link`, `mean` and `models` are needed again where they were functions of the user's own."""
    if not isinstance(path, str | PathLike):
        raise InputError(f"path: expected a file name, got {path!r}")
    kind, header, arrays = read(path)
    if kind not in ("curve", "fit"):
        raise StorageError(f"{path}: holds a {kind!r}, which this version cannot open")
    try:
        return open_curve(header, arrays, link, mean) if kind == "curve" else Fit(**vars(read_fit(header, arrays, models)))
    except InputError as error:
        if str(error).startswith(("link:", "mean:", "models:")):
            raise
        raise StorageError(f"{path}: damaged, its data do not pass the checks ({error})") from error
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise StorageError(f"{path}: damaged, a part is missing or malformed ({type(error).__name__}: {error})") from error
