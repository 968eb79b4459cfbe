"""Opening saved curves and fits."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from dynaesti.core import FIT_NAME, Folder, is_address, open_archive
from dynaesti.errors import DynaestiError, InputError, NeedsFunctionError, StorageError
from dynaesti.model import ItemModel
from dynaesti.results import Curve, Fit, Scorer, read_curve, read_fit, read_scorer
from dynaesti.sharded import load_sharded, open_sharded


def load(
    path: str | PathLike[str],
    *,
    link: Any = None,
    mean: Callable[[Any], Any] | None = None,
    models: Mapping[str, ItemModel] | None = None,
    connect: bool = False,
) -> Any:
    """Open a saved `Curve`, `Fit`, `Scorer` or `ShardedFit`.

    Files hold no pickles, so opening one runs no code; everything in it is checked.

    Parameters
    ----------
    path : str or path
        A file, or the folder of a run; also at an address such as ``s3://bucket/run``.
    link : pair of callables, optional
        The link of a curve, needed again where it was the user's own functions.
    mean : callable, optional
        The prior mean of a curve, needed again where it was a function of time.
    models : mapping of str to ItemModel, optional
        Item models of the user's own by label, needed again where a fit has any.
    connect : bool, default False
        Whether shards may be read from another host than the run's own. Without it a folder from
        elsewhere makes no connections.

    Returns
    -------
    Curve, Fit, Scorer or ShardedFit

    Raises
    ------
    StorageError
        If the file is missing, damaged, or of a later version.
    InputError
        If `path` is no file name.
    NeedsFunctionError
        If functions of the user's own are needed again.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import dynaesti as dy
    >>> curve = dy.CurvFiFE(bandwidth=2.0).fit([0, 1, 2], dy.Bernoulli([0, 1, 1]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = dy.load(curve.save(Path(folder) / "curve.dynaesti"))
    >>> bool((again.mean([0, 5]) == curve.mean([0, 5])).all())
    True
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
    """Open a file or folder, of whatever kind it is."""
    if is_address(path) and Folder(path).exists(FIT_NAME):
        return load_sharded(Folder(path), models, connect)
    file = Path(path)
    # a name too long, or with a zero in it, is refused by `open_archive`
    with suppress(OSError, ValueError):
        file = Path(path) / FIT_NAME if (Path(path) / FIT_NAME).exists() else Path(path)
    kind, header, arrays = open_archive(file)
    if kind not in ("curve", "fit", "scorer", "sharded fit"):
        raise StorageError(f"{path}: holds a {kind!r}, which this version cannot open")
    if kind == "sharded fit":
        return open_sharded(Folder(str(file.parent)), header, arrays, models, connect)
    if kind == "curve":
        return Curve(**read_curve(header, arrays, link, mean))
    if kind == "scorer":
        return Scorer(**read_scorer(header, arrays, models))
    return Fit(**read_fit(header, arrays, models))
