"""Files: reading no more than is meant, and writing so that what was there stays until all of it is written; and packages that are no requirement."""

from __future__ import annotations

import errno
import importlib
import os
import secrets
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

__all__ = ["check_regular", "is_within", "locked", "needed", "read_bytes", "replacing"]


def needed(package: str, what: str, install: str) -> Any:
    """A package that is no requirement; without it an ImportError says how to get it."""
    try:
        importlib.import_module(package.partition(".")[0])  # parts of it may be there while it is not
        return importlib.import_module(package)
    except ImportError as missing:
        raise type(missing)(f"{what}: pip install {install}", name=missing.name) from missing


# ---- reading -----------------------------------------------------------------------------------------------------------


def check_regular(path: str | os.PathLike[str], most: int) -> None:
    """OSError where a file is none (a pipe, a device: they need not end), or is longer than so many bytes."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(0, "it is no regular file", os.fspath(path))
    if status.st_size > most:
        raise OSError(0, f"it has {status.st_size} bytes; at most {most} are read", os.fspath(path))


def read_bytes(path: str | os.PathLike[str], most: int) -> bytes:
    """All of a file that a user names, whatever it is; OSError where there are more than so many bytes of it."""
    with open(path, "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(0, f"it has more than the {most} bytes that are read", os.fspath(path))
    return data


def is_within(path: str | os.PathLike[str], folders: Iterable[str | os.PathLike[str]]) -> bool:
    """Whether a file lies in one of the folders, or below, when all links are followed."""
    real = os.path.realpath(path)
    for folder in folders:
        root = os.path.join(os.path.realpath(folder), "")
        if os.path.normcase(real).startswith(os.path.normcase(root)):
            return True
    return False


# ---- writing -----------------------------------------------------------------------------------------------------------


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new file beside that one, to be written inside: then it takes its place, at once and with its permissions.

    Where writing fails the old file stays as it was, and nothing else is left. A link stays, and leads to the new file. What is
    no regular file, or lies in a folder that takes no new ones, is written as it stands.
    """
    target = Path(os.path.realpath(path))
    try:
        old = target.stat()
    except OSError:
        old = None
    if old is not None and not stat.S_ISREG(old.st_mode):
        yield target
        return
    if old is not None:
        with target.open("ab"):  # a PermissionError where it is not to be written
            pass
    # short, for the longest names; with the suffix, by which libraries know what to write
    fresh = target.with_name(f".{target.stem[:40]}.{secrets.token_hex(4)}{target.suffix}")
    try:
        os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    except PermissionError:
        if old is None:
            raise _named(path) from None
        yield target
        return
    except OSError as error:
        raise _named(path, error) from None
    try:
        if old is not None:
            with suppress(OSError, AttributeError):  # of another owner: as near as may be
                os.chown(fresh, old.st_uid, old.st_gid)
            os.chmod(fresh, stat.S_IMODE(old.st_mode))
        yield fresh
        os.replace(fresh, target)
    except BaseException as error:
        with suppress(OSError):
            fresh.unlink()
        if isinstance(error, OSError) and error.filename in (os.fspath(fresh), fresh):
            error.filename = os.fspath(path)
        raise


@contextmanager
def locked(path: str | os.PathLike[str], wait: float = 1.0) -> Iterator[bool]:
    """Hold a file's lock inside, which ends with the process too; False where somebody else, of this process or another, holds it for so long [s]."""
    with open(path, "ab") as file:
        until = time.monotonic() + wait
        while not (free := _lock(file.fileno())) and time.monotonic() < until:
            time.sleep(0.01)
        try:
            yield free
        finally:
            if free:
                _unlock(file.fileno())


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # forked workers, which have the file open too, would keep it


def _named(path: str | os.PathLike[str], error: OSError | None = None) -> OSError:
    """The error with the name that the caller knows."""
    number = errno.EACCES if error is None or error.errno is None else error.errno
    return OSError(number, os.strerror(number), os.fspath(path))


def relative(folder: str, path: str) -> str:
    """Return a path as seen from a folder; a relative one as it is."""
    if not folder or not os.path.isabs(path):
        return path
    try:
        return os.path.relpath(path, folder)
    except ValueError:  # on another drive
        return path
