"""Bounded reading and atomic writing of files, and import of optional packages."""

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


def needed(package: str, purpose: str, install: str) -> Any:
    """Import and return an optional package; raise ImportError with the command that installs it."""
    try:
        # a subpackage may be installed although the package itself is missing
        importlib.import_module(package.partition(".")[0])
        return importlib.import_module(package)
    except ImportError as missing:
        raise type(missing)(f"{purpose}: pip install {install}", name=missing.name) from missing


# ---- reading -----------------------------------------------------------------------------------------------------------


def check_regular(path: str | os.PathLike[str], most: int) -> None:
    """Raise OSError if a path is not a regular file, or the file has more than `most` bytes.

    Pipes and devices are excluded because they may never end.
    """
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(0, "it is no regular file", os.fspath(path))
    if status.st_size > most:
        raise OSError(0, f"file of {status.st_size} bytes; expected at most {most}", os.fspath(path))


def read_bytes(path: str | os.PathLike[str], most: int) -> bytes:
    """Return all bytes of a file, pipe or device; raise OSError if there are more than `most`."""
    with open(path, "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(0, f"file too large; expected at most {most} bytes", os.fspath(path))
    return data


def is_within(path: str | os.PathLike[str], folders: Iterable[str | os.PathLike[str]]) -> bool:
    """Return True if a file is in one of the folders or their subfolders, after resolving symbolic links."""
    real = os.path.realpath(path)
    for folder in folders:
        root = os.path.join(os.path.realpath(folder), "")
        if os.path.normcase(real).startswith(os.path.normcase(root)):
            return True
    return False


# ---- writing -----------------------------------------------------------------------------------------------------------


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a new file in the same folder; on exit it replaces the old file atomically and gets the old permissions.

    If writing fails, the old file is unchanged and the new one is removed. If the path is a symbolic link, the link stays and refers to the new file.
    The path is written in place if it is not a regular file, or if the folder's permissions do not allow new files.
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
        with target.open("ab"):  # raises PermissionError if the old file is read-only
            pass
    # the name is shortened, because file systems limit its length; the suffix is kept, because libraries infer the format from it
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
            with suppress(OSError, AttributeError):  # only the superuser may set another owner
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
    """Acquire the lock of a file, release it on exit, and yield True.

    Yields False if the lock is not free within `wait` seconds; another thread or process then has it. The operating system releases the lock when the
    process ends.
    """
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
        # unlock explicitly: forked worker processes inherit the open file, and would keep the lock
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _named(path: str | os.PathLike[str], error: OSError | None = None) -> OSError:
    """Return the error with its file name replaced by the path that the caller passed."""
    number = errno.EACCES if error is None or error.errno is None else error.errno
    return OSError(number, os.strerror(number), os.fspath(path))


def relative(folder: str, path: str) -> str:
    """Return an absolute path relative to a folder; return a relative path unchanged."""
    if not folder or not os.path.isabs(path):
        return path
    try:
        return os.path.relpath(path, folder)
    except ValueError:  # the path is on another drive of Windows
        return path
