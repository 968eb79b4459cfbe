"""Saving fits, and opening whatever was saved."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from dynaesti.core import FIT_NAME, Folder, is_address, open_archive
from dynaesti.errors import DynaestiError, InputError, NeedsFunctionError, StorageError
from dynaesti.model import ItemModel
from dynaesti.results import Curve, Fit, read_curve, read_fit
from dynaesti.sharded import load_sharded, open_sharded


def load(
    path: str | PathLike[str],
    *,
    link: Any = None,
    mean: Callable[[Any], Any] | None = None,
    models: Mapping[str, ItemModel] | None = None,
    connect: bool = False,
) -> Any:
    """Open a saved `Curve`, `Fit` or `ShardedFit`.

    A file, or the folder of a run (also at an address such as s3://bucket/run).

    `link`, `mean` and `models` are needed again where they were functions of the user's own. A run
    whose shards lie at an address of another host than its own is opened only with `connect=True`:
    a folder from elsewhere calls nobody by itself.
    """
    if not isinstance(path, str | PathLike):
        raise InputError(f"path: expected a file name, got {path!r}")
    try:
        return _opened(fspath(path), link, mean, models, connect)
    except NeedsFunctionError:
        raise
    except InputError as error:
        raise StorageError(f"{path}: damaged, its data do not pass the checks ({error})") from error
    except (DynaestiError, MemoryError):
        raise
    except Exception as error:  # a file from elsewhere may hold anything
        raise StorageError(
            f"{path}: damaged, a part is missing or malformed ({type(error).__name__}: {error})"
        ) from error


def _opened(
    path: str, link: Any, mean: Any, models: Mapping[str, ItemModel] | None, connect: bool
) -> Any:
    if is_address(path) and Folder(path).exists(FIT_NAME):
        return load_sharded(Folder(path), models, connect)
    file = Path(path)
    with suppress(
        OSError, ValueError
    ):  # a name too long, or with a zero in it: `open_archive` tells
        file = Path(path) / FIT_NAME if (Path(path) / FIT_NAME).exists() else Path(path)
    kind, header, arrays = open_archive(file)
    if kind not in ("curve", "fit", "sharded fit"):
        raise StorageError(f"{path}: holds a {kind!r}, which this version cannot open")
    if kind == "sharded fit":
        return open_sharded(Folder(str(file.parent)), header, arrays, models, connect)
    if kind == "curve":
        return Curve(**read_curve(header, arrays, link, mean))
    return Fit(**read_fit(header, arrays, models))
