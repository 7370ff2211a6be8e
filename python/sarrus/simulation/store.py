"""Folder with the results of many runs, from which an interrupted call continues.

lock             locked by the call that writes to the folder, so that no second call can write to it
arguments.json   hashes of the call's arguments; written last when the folder is created
q.npy, v.npy, …  arrays of a Sweep, memory-mapped, readable by NumPy; status.npy marks the finished runs, and is written after their results
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any, cast

import numpy as np

from .._arrays import Array, ArrayLike, NDArray, checked_path
from .._build import __version__
from .._core import Status
from .._files import locked, replacing
from ..errors import ModelError
from ..mechanism import Mechanism
from ..variants import Listed, Variants
from .storage import as_json
from .workers import LANES, Rows, Work

FORMAT = 1
BLOCK = 2**20  # number of bytes that are written at once
OFTEN = 1.0  # interval between writes of results to the disk [s]


class Store:
    """Folder for the arrays of one call; raises ModelError if it belongs to a call with other arguments."""

    @classmethod
    @contextmanager
    def opened(cls, folder: str | os.PathLike[str], arguments: Mapping[str, Any]) -> Iterator[Store]:
        """Create the folder if needed, and lock it while the context is open."""
        path = checked_path(folder)
        path.mkdir(parents=True, exist_ok=True)
        with locked(path / "lock") as free:
            if not free:
                raise ModelError(
                    f"store: another call of simulate_many() is writing to '{path}': wait until it ends, or pass another folder"
                )
            yield cls(path, arguments)

    def __init__(self, folder: Path, arguments: Mapping[str, Any]) -> None:
        self.folder = folder
        self.arrays: dict[str, NDArray[Any]] = {}
        self._kept = time.monotonic()
        self._hashes = {"format": str(FORMAT)} | {name: _hash(part) for name, part in arguments.items()}
        self._index = self.folder / "arguments.json"
        self.resumes = self._index.exists()
        if self.resumes:
            try:
                stored = dict(json.loads(self._index.read_text(encoding="utf-8")))
            except (ValueError, TypeError) as error:
                raise ModelError(f"{self._index} was not written by sarrus: {error}") from error
            if different := [name for name, x in self._hashes.items() if stored.get(name) != x]:
                raise ModelError(
                    f"the runs in '{self.folder}' have different arguments: {', '.join(different)}. Pass another folder, "
                    "or remove this folder"
                )

    def check_room(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Raise MemoryError, before writing, if the arrays exceed the free space of the disk."""
        needed, free = 8.0 * sum(map(prod, shapes.values())), shutil.disk_usage(self.folder).free
        if not self.resumes and needed > free:
            raise MemoryError(
                f"the runs need {needed / 2**30:.3g} GiB, and the disk of '{self.folder}' has {free / 2**30:.3g} GiB free: store fewer samples "
                "by every=, or pass a folder on another disk as store="
            )

    def array(self, name: str, shape: tuple[int, ...], value: float, dtype: Any = np.float64) -> NDArray[Any]:
        """Return the stored array, or create one that is filled with this value."""
        path = self.folder / f"{name}.npy"
        if not self.resumes:
            _fill(path, shape, value, np.dtype(dtype))
        try:
            length = path.stat().st_size  # checked first, because mapping would extend a truncated file
            array: NDArray[Any] = np.load(path, mmap_mode="r+" if np.prod(shape) else None)
        except (ValueError, OSError, EOFError) as error:
            raise ModelError(f"{path} was changed: {error}") from error
        complete = not isinstance(array, np.memmap) or array.offset + array.nbytes == length
        if array.shape != shape or array.dtype != dtype or not complete:
            raise ModelError(f"{path} was changed: expected {np.dtype(dtype)} {shape}")
        self.arrays[name] = array
        return array

    def begin(self, ended: NDArray[np.int8], **constant: ArrayLike) -> NDArray[np.int8]:
        """Store the constant arrays and the hashes; return the stored statuses of the runs. All other arrays must exist before."""
        self._status = self.array("status", ended.shape, Status.INTERRUPTED, np.int8)
        for name, x in constant.items():
            with replacing(self.folder / f"{name}.npy") as fresh:
                np.save(fresh, x)
        with replacing(self._index) as fresh:
            fresh.write_text(json.dumps(self._hashes, indent=1), encoding="utf-8")
        return np.array(self._status)

    def keep(self, ended: NDArray[np.int8], now: bool = False) -> None:
        """Write results to the disk at most once per second; after them, write the statuses of the runs."""
        if now or time.monotonic() > self._kept + OFTEN:
            self._flush()
            self._status[:] = ended
            self._flush()
            self._kept = time.monotonic()

    def _flush(self) -> None:
        for array in self.arrays.values():
            if isinstance(array, np.memmap):
                array.flush()
                if hasattr(mmap, "MADV_DONTNEED"):  # otherwise the mapped pages would count as memory of this process
                    cast(mmap.mmap, cast(Any, array)._mmap).madvise(mmap.MADV_DONTNEED)

    def unfinished(self, work: Work, ended: NDArray[np.int8]) -> Work:
        """Return the unfinished runs and all runs of the same SIMD packets, so that each run has the same neighbours in the lanes as before.

        Therefore the results are bit for bit those of an uninterrupted call.
        """
        remaining = []
        for rows, job in work:
            runs = np.arange(len(ended))[rows]
            packets = np.unique(np.flatnonzero(ended[runs] == Status.INTERRUPTED) // LANES)
            k = (packets[:, None] * LANES + np.arange(LANES)).ravel()
            if len(k):
                remaining.append((runs[k[k < len(runs)]], job))
        return remaining


def arguments_of(
    work: Work, prepared: Any, method: Any, start: tuple[Array, Array, Any], parameters: Array, end: float
) -> dict[str, Any]:
    """Return the arguments, by name, that identify a call."""
    clock = work[0][1].schedule
    return {
        "sarrus": __version__,
        "mechanism": [(_described(job.setup.mechanism), _numbers(rows)) for rows, job in work],
        "controller": [(job.setup.terms, job.setup.effort_limits) for _, job in work] + [parameters],
        "limits": [p.limits.terms for p in prepared],
        "method": method,
        "times": [clock.times, clock.every, clock.steps, end],
        "q": start[0], "v": start[1], "near": start[2],
    }  # fmt: skip


def _described(mechanism: Mechanism | Variants) -> Any:
    if isinstance(mechanism, Listed):
        return [as_json(m.description) for m in mechanism]
    description = as_json(mechanism.description)
    return [description, mechanism._own_changes()] if isinstance(mechanism, Variants) else description


def _numbers(rows: Rows) -> Any:
    return [rows.start, rows.stop] if isinstance(rows, slice) else rows


def _hash(part: Any) -> str:
    """Return a hash of numbers, names, and lists of these; a function has a different hash in each call."""

    def plain(x: Any) -> Any:
        if isinstance(x, np.ndarray):
            return [str(x.dtype), x.shape, hashlib.sha256(np.ascontiguousarray(x).tobytes()).hexdigest()]
        return x.tolist() if isinstance(x, np.generic) else repr(x)

    return hashlib.sha256(json.dumps(part, default=plain, sort_keys=True).encode()).hexdigest()


def _fill(path: Path, shape: tuple[int, ...], value: float, dtype: np.dtype[Any]) -> None:
    """Write a file with an array of this value; all bytes are written, not a sparse file, so that a full disk raises its error now.

    An existing file is replaced by a new one, not truncated, because a reader may have mapped it.
    """
    block = np.full(BLOCK // dtype.itemsize, value, dtype).tobytes()
    with replacing(path) as fresh, fresh.open("wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        remaining = int(np.prod(shape)) * dtype.itemsize
        while remaining > 0:
            remaining -= file.write(block[:remaining])
