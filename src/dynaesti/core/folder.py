"""Folders: local paths, and addresses such as s3://bucket/folder through fsspec."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dynaesti.core.atomic_files import atomic_path
from dynaesti.errors import MissingExtraError, StorageError


def is_address(path: str) -> bool:
    """Whether a path is an address for fsspec (s3://…), or a chain of them (zip::s3://…)."""
    return "://" in path or "::" in path


@dataclass(frozen=True)
class Folder:
    """A local or remote folder, in which files are written whole or not at all.

    Parameters
    ----------
    root : str
        Its path or address.
    """

    root: str

    @property
    def local(self) -> bool:
        """Whether the folder is on this machine's own file system."""
        return not is_address(self.root)

    @cached_property
    def _remote(self) -> tuple[Any, str]:
        """The file system of an address, and the path there."""
        try:
            import fsspec
        except ImportError:
            raise MissingExtraError(
                f"{self.root}: addresses need fsspec: pip install 'dynaesti[scale]'"
            ) from None
        try:
            system, path = fsspec.core.url_to_fs(self.root)
        except (ImportError, ValueError) as error:
            raise StorageError(f"{self.root}: cannot be opened ({error})") from error
        return system, path

    def path(self, name: str = "") -> str:
        """The path or address of a file in the folder; of the folder itself without a name."""
        return os.path.join(self.root, name) if self.local else posixpath.join(self.root, name)

    def relative(self, other: str) -> str:
        """The path of another folder relative to this one, so that both can be moved together.

        Addresses, and local paths seen from an address, are absolute.
        """
        if is_address(other):
            return other
        return os.path.relpath(other, self.root) if self.local else os.path.abspath(other)

    def resolved(self, other: str) -> str:
        """The path or address that `relative` has shortened."""
        return (
            other
            if is_address(other) or os.path.isabs(other) or not self.local
            else os.path.normpath(os.path.join(self.root, other))
        )

    def may_reach(self, other: str) -> bool:
        """Whether a path in a saved file may be followed without asking.

        It may if it is local, or on the host and in the bucket of this folder's own address.
        """
        return not is_address(other) or (
            not self.local and urlsplit(other)[:2] == urlsplit(self.root)[:2] and "::" not in other
        )

    def child(self, name: str) -> Folder:
        """A folder within this one."""
        return Folder(self.path(name))

    def exists(self, name: str) -> bool:
        """Whether the folder has such a file."""
        if self.local:
            try:
                return Path(self.path(name)).exists()
            except (OSError, ValueError):  # a name too long, or with a zero in it
                return False
        system, path = self._remote
        return bool(system.exists(posixpath.join(path, name)))

    def names(self) -> list[str]:
        """Names of the files in the folder, sorted; none if there is no folder."""
        if self.local:
            return (
                sorted(entry.name for entry in os.scandir(self.root))
                if Path(self.root).is_dir()
                else []
            )
        system, path = self._remote
        system.invalidate_cache()
        return (
            sorted(posixpath.basename(found) for found in system.ls(path, detail=False))
            if system.exists(path)
            else []
        )

    @contextmanager
    def reading(self, name: str) -> Iterator[Any]:
        """Open a file to read bytes from."""
        try:
            if self.local:
                with open(self.path(name), "rb") as file:
                    yield file
            else:
                system, path = self._remote
                with system.open(posixpath.join(path, name), "rb") as file:
                    yield file
        except FileNotFoundError as error:
            raise StorageError(f"{self.path(name)}: no such file") from error

    @contextmanager
    def writing(self, name: str) -> Iterator[Any]:
        """Open a file to write bytes to; it appears under its name when all are written."""
        if self.local:
            with suppress(OSError):  # reported when the file cannot be made
                Path(self.path(name)).parent.mkdir(parents=True, exist_ok=True)
            with atomic_path(self.path(name)) as part, part.open("wb") as file:
                yield file
            return
        system, path = self._remote
        target = posixpath.join(path, name)
        system.makedirs(posixpath.dirname(target), exist_ok=True)
        try:
            with system.open(target, "wb") as file:  # stores show an object only once it is whole
                yield file
        except OSError as error:
            raise StorageError(f"{self.path(name)}: could not be written ({error})") from error

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""
        if self.local:
            Path(self.path(name)).unlink(missing_ok=True)
            return
        system, path = self._remote
        with suppress(FileNotFoundError):
            system.rm_file(posixpath.join(path, name))
