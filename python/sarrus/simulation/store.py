"""What comes back of many runs in a folder, from which a call that was cut off goes on.

lock             held by the call that writes here, so that there is but one
arguments.json   hashes of what the runs were made from, part by part; written last when the folder is made
q.npy, v.npy     as of a Sweep, and so on: open to every reader of NumPy's files, mapped and not read; status.npy says which runs are done:
                 it is written after what it speaks of
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
BLOCK = 2**20  # bytes
OFTEN = 1.0  # [s]


class Store:
    """A folder for the arrays of one call; ModelError where it is of another one."""

    @classmethod
    @contextmanager
    def opened(cls, folder: str | os.PathLike[str], arguments: Mapping[str, Any]) -> Iterator[Store]:
        """The folder, which is made if need be and is no other call's inside."""
        path = checked_path(folder)
        path.mkdir(parents=True, exist_ok=True)
        with locked(path / "lock") as free:
            if not free:
                raise ModelError(
                    f"another call of simulate_many() writes to '{path}': wait for it, or name another folder in store="
                )
            yield cls(path, arguments)

    def __init__(self, folder: Path, arguments: Mapping[str, Any]) -> None:
        self.folder = folder
        self.arrays: dict[str, NDArray[Any]] = {}
        self._kept = time.monotonic()
        self._hashes = {"format": str(FORMAT)} | {what: _hash(part) for what, part in arguments.items()}
        self._index = self.folder / "arguments.json"
        self.resumes = self._index.exists()
        if self.resumes:
            try:
                there = dict(json.loads(self._index.read_text(encoding="utf-8")))
            except (ValueError, TypeError) as error:
                raise ModelError(f"{self._index} is none that sarrus wrote: {error}") from error
            if other := [what for what, x in self._hashes.items() if there.get(what) != x]:
                raise ModelError(
                    f"the runs in '{self.folder}' were made from other arguments; these differ: {', '.join(other)}. Name another folder, "
                    "or remove this one"
                )

    def check_room(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """MemoryError for numbers that would not fit on the disk, before any of them is written."""
        needed, free = 8.0 * sum(map(prod, shapes.values())), shutil.disk_usage(self.folder).free
        if not self.resumes and needed > free:
            raise MemoryError(
                f"the runs take {needed / 2**30:.3g} GiB, and the disk of '{self.folder}' has {free / 2**30:.3g} left: keep fewer of their states, "
                "by every=, or name a folder of another disk in store="
            )

    def array(self, name: str, shape: tuple[int, ...], value: float, dtype: Any = np.float64) -> NDArray[Any]:
        """The one that is there, or a new one with this value throughout."""
        path = self.folder / f"{name}.npy"
        if not self.resumes:
            _fill(path, shape, value, np.dtype(dtype))
        try:
            long = path.stat().st_size  # mapping would make a file longer that was cut
            array: NDArray[Any] = np.load(path, mmap_mode="r+" if np.prod(shape) else None)
        except (ValueError, OSError, EOFError) as error:
            raise ModelError(f"{path} was changed: {error}") from error
        whole = not isinstance(array, np.memmap) or array.offset + array.nbytes == long
        if array.shape != shape or array.dtype != dtype or not whole:
            raise ModelError(f"{path} was changed: it does not hold {np.dtype(dtype)} {shape}")
        self.arrays[name] = array
        return array

    def begin(self, ended: NDArray[np.int8], **constant: ArrayLike) -> NDArray[np.int8]:
        """With all arrays there, and those that do not change; how runs have ended so far."""
        self._status = self.array("status", ended.shape, Status.INTERRUPTED, np.int8)
        for name, x in constant.items():
            with replacing(self.folder / f"{name}.npy") as fresh:
                np.save(fresh, x)
        with replacing(self._index) as fresh:
            fresh.write_text(json.dumps(self._hashes, indent=1), encoding="utf-8")
        return np.array(self._status)

    def keep(self, ended: NDArray[np.int8], now: bool = False) -> None:
        """Every second: all that runs did, and then, when it is on the disk, that they are done."""
        if now or time.monotonic() > self._kept + OFTEN:
            self._flush()
            self._status[:] = ended
            self._flush()
            self._kept = time.monotonic()

    def _flush(self) -> None:
        for array in self.arrays.values():
            if isinstance(array, np.memmap):
                array.flush()
                if hasattr(mmap, "MADV_DONTNEED"):  # the file has them; else they count as this process's memory
                    cast(mmap.mmap, cast(Any, array)._mmap).madvise(mmap.MADV_DONTNEED)

    def left(self, work: Work, ended: NDArray[np.int8]) -> Work:
        """Runs that are not done; with those that stand beside them in lanes, so that each meets the same neighbours again."""
        open_ = []
        for rows, job in work:
            these = np.arange(len(ended))[rows]
            packets = np.unique(np.flatnonzero(ended[these] == Status.INTERRUPTED) // LANES)
            k = (packets[:, None] * LANES + np.arange(LANES)).ravel()
            if len(k):
                open_.append((these[k[k < len(these)]], job))
        return open_


def arguments_of(
    work: Work, prepared: Any, method: Any, start: tuple[Array, Array, Any], parameters: Array, end: float
) -> dict[str, Any]:
    """What tells a call from another one, part by part."""
    clock = work[0][1].schedule
    return {
        "sarrus": __version__,
        "mechanism": [(_described(job.setup.mechanism), _numbers(rows)) for rows, job in work],
        "controller": [(job.setup.terms, job.setup.effort_limits) for _, job in work] + [parameters],
        "limits": [one.limits.terms for one in prepared],
        "method": method,
        "times": [clock.times, clock.every, clock.steps, end],
        "q": start[0], "v": start[1], "near": start[2],
    }  # fmt: skip


def _described(mechanism: Mechanism | Variants) -> Any:
    if isinstance(mechanism, Listed):
        return [as_json(one.description) for one in mechanism]
    description = as_json(mechanism.description)
    return [description, mechanism._own_changes()] if isinstance(mechanism, Variants) else description


def _numbers(rows: Rows) -> Any:
    return [rows.start, rows.stop] if isinstance(rows, slice) else rows


def _hash(part: Any) -> str:
    """Of numbers, names, and lists of these; a function counts as another one each time."""

    def plain(x: Any) -> Any:
        if isinstance(x, np.ndarray):
            return [str(x.dtype), x.shape, hashlib.sha256(np.ascontiguousarray(x).tobytes()).hexdigest()]
        return x.tolist() if isinstance(x, np.generic) else repr(x)

    return hashlib.sha256(json.dumps(part, default=plain, sort_keys=True).encode()).hexdigest()


def _fill(path: Path, shape: tuple[int, ...], value: float, dtype: np.dtype[Any]) -> None:
    """A file of an array of this value: written, and not left empty, so that a full disk is told of here.

    One that is there is replaced and not cut: whoever has it mapped keeps it.
    """
    block = np.full(BLOCK // dtype.itemsize, value, dtype).tobytes()
    with replacing(path) as fresh, fresh.open("wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        left = int(np.prod(shape)) * dtype.itemsize
        while left > 0:
            left -= file.write(block[:left])
