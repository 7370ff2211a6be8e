"""Files of trajectories and sweeps, and folders of runs that are not finished.

.npz    all constructor arguments of a trajectory: arrays, and other data as JSON. Description and checkpoint are pickled; the description is also
        JSON, for readers that do not unpickle
.csv    a table with a row for each sample, whose column names end in units (`columns`). Tables of earlier versions, without units, can be read too
folder  results of many runs, from which an interrupted call continues:

        lock             locked by the call that writes to the folder, so that no second call can write to it
        arguments.json   hashes of the call's arguments; written last when the folder is created
        q.npy, v.npy, …  arrays of a Sweep, memory-mapped, readable by NumPy; status.npy marks the finished runs, and is written after their results

Readers return the constructor arguments of a trajectory by name, and raise ValueError for an invalid file.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import mmap
import os
import pickle
import re
import shutil
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from .._arrays import Array, ArrayLike, NDArray, checked_path
from .._build import __version__
from .._core import Status
from .._files import locked, needed, relative, replacing
from .._renamed import MODULES
from ..errors import ModelError
from ..mechanism import Mechanism
from ..shapes import Mesh
from ..variants import Listed, Variants
from .histories import PlaneContact
from .setup import Groups, Limit

FORMAT, SWEEP_FORMAT = 3, 1  # version numbers of the .npz formats
PLACED = {"wrench": "wrenches", "push": "pushes"}  # prefix in a file -> argument of a trajectory
SAMPLES = ("t", "q", "v", "a", "internal_state", "loop_q", "friction")
IN_SWEEP = ("t", "q", "v", "status", "internal_state", "excess", "stiffness")
IN_FILE = {"internal_state": "z"}  # names of arrays in files, if they differ from the names of the arguments


def suffix(path: Path, suffixes: tuple[str, ...] = (".npz", ".csv"), kind: str = "trajectory") -> str:
    """Return the suffix of a file name in lower case; raise ValueError unless it is one of `suffixes`."""
    ending = path.suffix.lower()
    if ending not in suffixes:
        raise ValueError(f"a {kind} is a {' or a '.join(suffixes)} file; got '{path.name}'")
    return ending


def write_npz(path: Path, contents: Mapping[str, Any]) -> None:
    """Write the arguments of a trajectory; `efforts` is an array or None."""
    mechanism: Mechanism = contents["mechanism"]
    cure = "save as .csv, or define the function at the top of a module"
    pickled = _pickled(path, mechanism, (contents["checkpoint"],), cure)
    events = contents["events"]
    notes = {name: contents[name] for name in ("statistics", "status", "touching", "on_planes")}
    notes |= {"format": FORMAT, "events": list(events)}
    samples = {name: contents[name] for name in SAMPLES} | {"tau": contents["efforts"]}
    arrays: dict[str, Any] = {IN_FILE.get(name, name): x for name, x in samples.items() if x is not None}
    arrays |= {f"event_{k}": at for k, at in enumerate(events.values())}
    arrays |= {f"{kind}:{name}": x for kind in PLACED for name, x in contents[PLACED[kind]].items()}
    _write(path, mechanism, notes, pickled, arrays)


def _write(path: Path, mechanism: Mechanism, notes: Any, pickled: bytes, arrays: dict[str, Any]) -> None:
    described = json.dumps(as_json(mechanism.description)).encode()
    arrays |= {"notes": np.array(json.dumps(notes, default=lambda x: getattr(x, "tolist", x.__str__)()))}
    arrays |= {"description": np.frombuffer(described, np.uint8), "pickled": np.frombuffer(pickled, np.uint8)}
    with replacing(path) as fresh, fresh.open("wb") as file:
        np.savez(file, **arrays)


def read_npz(path: Path, mechanism: Mechanism | None) -> dict[str, Any]:
    """Read the arguments of a trajectory. With a mechanism nothing is unpickled, and the checkpoint is omitted."""

    def facts_of(arrays: Any, notes: Any) -> dict[str, Any]:
        events = {str(name): arrays[f"event_{k}"] for k, name in enumerate(notes["events"])}
        facts = {"statistics": dict(notes["statistics"]), "status": str(notes["status"]), "events": events}
        touching = tuple(map(int, notes.get("touching") or ()))
        on_planes = tuple(PlaneContact(*fields) for fields in notes.get("on_planes", ()))
        return facts | {"touching": touching or None, "on_planes": on_planes}

    arrays, described, facts = _opened(path, "trajectory", FORMAT, ("t", "q", "v"), facts_of)
    mechanism, pickled = _mechanism_of(path, arrays, described, mechanism, "Trajectory")
    samples = {name: arrays.get(IN_FILE.get(name, name)) for name in SAMPLES} | {"efforts": arrays.get("tau")}
    placed = {
        argument: {name.partition(":")[2]: x for name, x in arrays.items() if name.startswith(f"{kind}:")}
        for kind, argument in PLACED.items()
    }
    checkpoint = pickled[0] if pickled else None
    return {"mechanism": mechanism, **samples, **placed, **facts, "checkpoint": checkpoint}


def write_sweep(path: Path, contents: Mapping[str, Any]) -> None:
    """Write the arguments of a sweep, with its force elements."""
    mechanism: Mechanism = contents["mechanism"]
    several = () if contents["mechanisms"] is None else (contents["mechanisms"],)
    pickled = _pickled(path, mechanism, (contents["acting"], *several), "define it at the top of a module")
    arrays = {IN_FILE.get(name, name): contents[name] for name in (*IN_SWEEP, "efforts") if contents[name] is not None}
    limits = [asdict(limit) for limit in contents["limits"]]
    notes = {"format": SWEEP_FORMAT, "limits": limits, "counted": contents["counted"]}
    notes["several mechanisms"] = bool(several)
    _write(path, mechanism, notes, pickled, arrays)


def read_sweep(path: Path, mechanism: Mechanism | None) -> dict[str, Any]:
    """Read the arguments of a sweep. With a mechanism nothing is unpickled, and the force elements are omitted."""

    def facts_of(_: Any, notes: Any) -> dict[str, Any]:
        several, limits = bool(notes.get("several mechanisms")), [Limit(**limit) for limit in notes["limits"]]
        return {"limits": limits, "counted": int(notes.get("counted", 0)), "mechanisms": several}

    names = {name: IN_FILE.get(name, name) for name in IN_SWEEP}
    arrays, described, facts = _opened(path, "sweep", SWEEP_FORMAT, names.values(), facts_of)
    if mechanism is not None and facts["mechanisms"]:
        raise ValueError(
            "the runs of the file have different mechanisms; use Sweep.load(path) without mechanism=, which unpickles them"
        )
    mechanism, pickled = _mechanism_of(path, arrays, described, mechanism, "Sweep")
    acting, mechanisms, *_ = [*pickled, None, None]
    contents = {name: arrays[stored] for name, stored in names.items()} | {"efforts": arrays.get("efforts")}
    runs, n = len(contents["status"]), len(contents["t"])
    for name, size in (("q", mechanism.nq), ("v", mechanism.nv), ("efforts", mechanism.nv)):
        if contents[name] is not None and contents[name].shape != (runs, n, size):
            raise ValueError(f"{name} must be ({runs}, {n}, {size}); got {contents[name].shape}")
    return {"mechanism": mechanism, **contents, **facts, "acting": acting, "mechanisms": mechanisms}


def _opened(
    path: Path, kind: str, format: int, needed: Iterable[str], facts_of: Any
) -> tuple[dict[str, Any], Any, dict[str, Any]]:
    """Return the arrays of an .npz, the description of its mechanism, and the facts from its JSON data; raise ValueError for an invalid file."""
    data = path.read_bytes()
    try:
        arrays = _arrays(data)
        missing = [name for name in ("notes", "description", "pickled", *needed) if name not in arrays]
        notes = {} if "notes" in missing else json.loads(arrays["notes"].item())
        faults = [f"the file lacks {', '.join(missing)}"] if missing else []
        if notes.get("format", format) != format:
            faults.append(f"the file has format {notes['format']!r}; this version of sarrus reads format {format}")
        if faults:
            raise ValueError("; ".join(faults))
        return arrays, json.loads(arrays["description"].tobytes()), facts_of(arrays, notes)
    except Exception as error:  # a foreign file may raise any error
        raise ValueError(f"not a {kind} saved by sarrus: {error}") from error


def _mechanism_of(
    path: Path, arrays: Mapping[str, Any], described: Any, mechanism: Mechanism | None, kind: str
) -> tuple[Mechanism, list[Any]]:
    """Return the mechanism of a file, and all other unpickled objects. If the caller provides the mechanism, nothing is unpickled."""
    if mechanism is not None:
        if different := _difference(described, as_json(mechanism.description)):
            raise ValueError(f"the file belongs to a mechanism other than '{mechanism.name}': {different}")
        return mechanism, []
    try:
        unpickler = _Unpickler(io.BytesIO(arrays["pickled"].tobytes()), str(path.absolute().parent))
        description, *parts = unpickler.load()
        return Mechanism(description), parts
    except Exception as error:  # a pickle may raise any error
        fault = f"the mechanism of the file cannot be unpickled ({type(error).__name__}: {error})"
        raise ValueError(f"{fault}; give it: {kind}.load(path, mechanism=...)") from error


class _Pickler(pickle.Pickler):
    """Pickler that stores folders of meshes relative to the file's folder.

    Therefore the file contains no absolute paths, and can be moved together with its meshes.
    """

    def __init__(self, file: io.BytesIO, folder: str) -> None:
        super().__init__(file)
        self.folder = folder

    def persistent_id(self, part: Any) -> tuple[Any, ...] | None:
        if type(part) is not Mesh:
            return None
        beside, *package_dirs = (relative(self.folder, x) for x in (part.beside, *part.package_dirs))
        return part.file, part.scale, beside, tuple(package_dirs)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, folder: str) -> None:
        super().__init__(file)
        self.folder = folder

    def find_class(self, module: str, name: str) -> Any:
        """Return a class; files of earlier versions have other names for modules and for the shared data of runs."""
        if module == "sarrus.simulation.sweep":
            return SimpleNamespace if name in ("_Job", "_Clock") else super().find_class(module, "RunForces")
        return super().find_class(MODULES.get(module, module), name)

    def persistent_load(self, identity: tuple[Any, ...]) -> Mesh:
        file, scale, *folders, package_dirs = identity
        every = (*folders, *package_dirs)
        beside, *package_dirs = (os.path.normpath(os.path.join(self.folder, x)) if x else x for x in every)
        return Mesh(file, scale, beside, tuple(package_dirs))


def _pickled(path: Path, mechanism: Mechanism, parts: tuple[Any, ...], cure: str) -> bytes:
    try:
        _Pickler(file := io.BytesIO(), str(path.absolute().parent)).dump((mechanism.description, *parts))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        fault = f"'{mechanism.name}' contains a function that cannot be pickled ({error})"
        raise ModelError(f"{fault}: {cure}") from error
    return file.getvalue()


def numbered(mechanisms: Sequence[Mechanism]) -> Array:
    """Return the index of each mechanism among the distinct ones, in the order of their first occurrence."""
    numbers = {mechanism: k for k, mechanism in enumerate(dict.fromkeys(mechanisms))}
    return np.array([numbers[mechanism] for mechanism in mechanisms], np.int64)


def write_parquet(path: Path, parts: Iterator[Any]) -> None:
    """Write a table block by block, so that it is never completely in memory."""
    parquet = needed("pyarrow.parquet", "a .parquet needs pandas and pyarrow", "pandas pyarrow")
    table = needed("pyarrow", "a .parquet needs pandas and pyarrow", "pandas pyarrow").Table
    first = table.from_pandas(next(parts), preserve_index=False)
    with parquet.ParquetWriter(path, first.schema) as file:
        file.write_table(first)
        for part in parts:
            file.write_table(table.from_pandas(part, schema=first.schema, preserve_index=False))


def read_parquet(path: Path, mechanisms: Sequence[Mechanism]) -> dict[str, Any]:
    """Read the arguments of a sweep from a table of all samples, for a single mechanism, or for a mechanism of each run."""
    import pandas

    mechanism = mechanisms[0]
    try:
        frame = pandas.read_parquet(path)
    except (ImportError, FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except Exception as error:  # pyarrow raises many different exceptions
        raise ValueError(f"the table cannot be read: {' '.join(str(error).split())[:300]}") from error
    index = frame.pop("mechanism").to_numpy() if "mechanism" in frame else np.zeros(len(frame))
    expected = ["run", "status", "t [s]", *joint_columns(mechanism, mechanism.joints, "qv")]
    if list(frame.columns) not in (expected, without_units(expected)):
        raise ValueError(f"the columns of the table do not fit '{mechanism.name}'; expected {', '.join(expected)}")
    table = frame.to_numpy(np.float64)
    if not np.isin(table[:, 1], list(map(int, Status))).all():
        raise ValueError(
            f"the table contains an unknown status; expected {', '.join(str(int(status)) for status in Status)}"
        )
    runs = int(table[-1, 0]) + 1 if len(table) and 0 <= table[-1, 0] < len(table) else 0
    if not runs or len(table) % runs or (table[:, 0] != np.repeat(np.arange(runs), len(table) // runs)).any():
        raise ValueError("the rows of the table must be consecutive runs with equally many samples")
    table = table.reshape(runs, -1, len(expected))
    index = index.reshape(runs, -1)[:, 0]
    if len(mechanisms) not in (1, runs) or (numbered(mechanisms) != index).any():
        fault = f"the {runs} runs of the table have {len(set(index))} mechanisms, in the order {index.astype(int).tolist()[:9]}"
        raise ValueError(
            f"{fault}...: pass mechanism= as a list with the mechanism of each run, or as a single mechanism"
        )
    q, v = table[:, :, 3 : 3 + mechanism.nq], table[:, :, 3 + mechanism.nq :]
    status = table[:, 0, 1].astype(np.int8)
    several, z = list(mechanisms) if index.any() else None, np.empty((*q.shape[:2], 0))
    samples = {"t": table[0, :, 2], "q": q, "v": v, "internal_state": z, "status": status}
    return {"mechanism": mechanism, "mechanisms": several, **samples}


def _arrays(data: bytes) -> dict[str, Any]:
    """Return the arrays by name.

    Before memory is allocated, their declared sizes are compared with the length of the file, because an invalid file may declare any size.
    """
    arrays = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        declared = sum(member.file_size for member in members)
        if declared > len(data) or any(member.compress_type != zipfile.ZIP_STORED for member in members):
            fault = f"the arrays of the file are compressed, {len(data)} bytes for {declared}; sarrus writes uncompressed arrays"
            raise ValueError(f"{fault}; if you trust the file: np.savez(path, **np.load(path))")
        for member in members:
            file = io.BytesIO(archive.read(member))
            version = np.lib.format.read_magic(file)
            header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = header(file)
            if math.prod(shape) * dtype.itemsize != member.file_size - file.tell():
                raise ValueError(f"the length of {member.filename} does not fit its shape {shape} of {dtype}")
            file.seek(0)
            arrays[member.filename.removesuffix(".npy")] = np.lib.format.read_array(file, allow_pickle=False)
    return arrays


def as_json(part: Any) -> Any:
    """Return a description as JSON data, with all fields that take part in comparisons."""
    if is_dataclass(part):
        compared = {f.name: as_json(getattr(part, f.name)) for f in fields(part) if f.compare}
        return {"kind": type(part).__name__, **compared}
    if isinstance(part, (tuple, list)):
        return [as_json(x) for x in part]
    if callable(part):
        return f"function {getattr(part, '__qualname__', type(part).__qualname__)}"
    return part.tolist() if isinstance(part, (np.ndarray, np.generic)) else part


def _difference(stored: Any, expected: Any, path: str = "") -> str:
    """Return a message about the first difference of two descriptions; "" if they agree up to rounding, which depends on the machine."""
    if isinstance(stored, dict) and isinstance(expected, dict) and stored.keys() == expected.keys():
        parts = [(stored[name], expected[name], f"{path}.{name}".lstrip(".")) for name in stored]
    elif isinstance(stored, list) and isinstance(expected, list) and len(stored) == len(expected):
        parts = [(x, y, f"{path}[{k}]") for k, (x, y) in enumerate(zip(stored, expected, strict=True))]
    elif isinstance(stored, float) and isinstance(expected, (int, float)):
        same = math.isclose(stored, expected, rel_tol=1e-9, abs_tol=1e-12)
        return "" if same else f"{path} is {stored!r}, not {expected!r}"
    elif isinstance(stored, (dict, list)) or isinstance(expected, (dict, list)):
        return f"{path or 'the description'} differs"
    else:
        return "" if stored == expected else f"{path} is {stored!r}, not {expected!r}"
    return next(filter(None, (_difference(*part) for part in parts)), "")


def write_csv(path: Path, names: Sequence[str], blocks: Iterable[Array]) -> None:
    """Write a table with the given column names, in blocks of rows."""
    with replacing(path) as fresh, fresh.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        for block in blocks:
            writer.writerows(block.tolist())


def read_csv(path: Path, mechanism: Mechanism) -> tuple[dict[str, Any], Array]:
    """Read the arguments of a trajectory from a table, whose columns must fit the mechanism; also return the table's energy (n,)."""
    with path.open(newline="", encoding="utf-8") as file:
        try:
            head = next(csv.reader(file), [])
        except csv.Error as error:
            raise ValueError(f"the first line is not the header of a table: {error}") from error
        with_a, with_tau = (any(name.startswith(part) for name in head) for part in ("a:", "tau:"))
        loaded = [name[7:-8] for name in head if name.startswith("wrench:") and name.endswith(":0 [N m]")]
        frames = [name[2:-4] for name in head if name.startswith("x:")]
        expected = columns(mechanism, with_tau, with_a, loaded, frames)
        if head[:1] == ["t"]:
            expected = without_units(columns(mechanism, with_tau, with_a, (), (), ()))
        if head != expected:
            missing = [f"column '{name}' is missing" for name in expected if name not in head]
            fault = next(iter(missing), f"expected {', '.join(expected)}")
            raise ValueError(f"the columns of the table do not fit '{mechanism.name}'; {fault}")
        lines = file.read()
    table = np.empty((0, len(head)))
    if lines.strip():
        table = np.loadtxt(io.StringIO(lines), delimiter=",", comments=None, ndmin=2)
    if table.shape[1] != len(head):
        raise ValueError(f"the rows of the table have {table.shape[1]} numbers for {len(head)} columns")
    nq, nv, closing = mechanism.nq, mechanism.nv, [joint.type for joint in mechanism._closing_joints]
    loop_sizes = [sum(kind.nq for kind in closing), sum(kind.nv for kind in closing)] if head[0] != "t" else [0, 0]
    ends = np.cumsum([1, nq, nv, with_tau * nv, with_a * nv, 1, 1, *loop_sizes, 6 * len(loaded)])
    t, q, v, tau, a, energy, _, loop_q, _, wrenches, _ = np.split(table, ends, axis=1)
    samples: dict[str, Any] = {"t": t[:, 0], "q": q, "v": v}
    samples |= {"efforts": tau if with_tau else None, "a": a if with_a else None}
    loads = dict(zip(loaded, np.split(wrenches, max(len(loaded), 1), axis=1), strict=False))
    samples |= {"loop_q": loop_q if loop_sizes[0] else None, "wrenches": loads}
    return {"mechanism": mechanism, **samples, "status": "unknown"}, energy[:, 0]


def columns(
    mechanism: Mechanism, with_tau: bool, with_a: bool, wrenches: Iterable[str] = (), frames: Iterable[str] = (), closing: Sequence[str] | None = None
) -> list[str]:  # fmt: skip
    """Return the column names of the table, with tau and a if requested."""
    spaces = ("q", "v", *["tau"] * with_tau, *["a"] * with_a)
    return [
        "t [s]", *joint_columns(mechanism, mechanism.joints, spaces), "energy [J]", "loop_error [rad or m]",
        *joint_columns(mechanism, mechanism.loop_joints if closing is None else closing, "qv"),
        *(head for name in wrenches for head in wrench_columns(name)),
        *(f"{axis}:{name} [m]" for name in frames for axis in "xyz"),
    ]  # fmt: skip


def joint_columns(mechanism: Mechanism, joints: Iterable[str], spaces: Iterable[str]) -> list[str]:
    """Return the names of joints' columns, such as "q:motor [rad]", or "v:ball:2 [rad/s]" if a joint has several coordinates."""
    from ..figures.figures import SPACES

    named = []
    for space in spaces:
        for name in joints:
            kind = mechanism.joint(name).type
            parts = kind.coordinates if space == "q" else kind.velocities
            units = [SPACES[space][2][unit].replace("²", "^2") for _, unit in parts]
            named += [f"{space}:{name}" + f":{k}" * (len(units) > 1) + f" [{unit}]" for k, unit in enumerate(units)]
    return named


def wrench_columns(name: str) -> list[str]:
    return [f"wrench:{name}:{k} [{'N m' if k < 3 else 'N'}]" for k in range(6)]


def without_units(heads: Iterable[str]) -> list[str]:
    return [re.sub(r" \[[^][]*\]$", "", head) for head in heads]


# ---- folder with the results of many runs ------------------------------------------------------------------------------

FOLDER_FORMAT = 1
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
                raise ModelError(f"store: another call of simulate_many() is writing to '{path}': pass another folder")
            yield cls(path, arguments)

    def __init__(self, folder: Path, arguments: Mapping[str, Any]) -> None:
        self.folder = folder
        self.arrays: dict[str, NDArray[Any]] = {}
        self._kept = time.monotonic()
        self._hashes = {"format": str(FOLDER_FORMAT)} | {name: _hash(part) for name, part in arguments.items()}
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
        needed, free = 8.0 * sum(map(math.prod, shapes.values())), shutil.disk_usage(self.folder).free
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

    def unfinished(self, groups: Groups, ended: NDArray[np.int8]) -> Groups:
        """Return the unfinished runs and all runs of the same SIMD packets, so that each run has the same neighbours in the lanes as before.

        Therefore the results are bit for bit those of an uninterrupted call.
        """
        from .workers import LANES

        remaining = []
        for rows, prepared in groups:
            runs = np.arange(len(ended))[rows]
            packets = np.unique(np.flatnonzero(ended[runs] == Status.INTERRUPTED) // LANES)
            k = (packets[:, None] * LANES + np.arange(LANES)).ravel()
            if len(k):
                remaining.append((runs[k[k < len(runs)]], prepared))
        return remaining


def arguments_of(
    groups: Groups, schedule: Any, method: Any, start: tuple[Array, Array, Any], parameters: Array, end: float
) -> dict[str, Any]:
    """Return the arguments, by name, that identify a call."""
    rows = [[rows.start, rows.stop] if isinstance(rows, slice) else rows for rows, _ in groups]
    setups = [p.setup for _, p in groups]
    return {
        "sarrus": __version__,
        "mechanism": [(_described(setup.mechanism), of) for setup, of in zip(setups, rows, strict=True)],
        "controller": [(setup.terms, setup.effort_limits) for setup in setups] + [parameters],
        "limits": [setup.limits for setup in setups],
        "method": method,
        "times": [schedule.times, schedule.every, schedule.steps, end],
        "q": start[0], "v": start[1], "near": start[2],
    }  # fmt: skip


def _described(mechanism: Mechanism | Variants) -> Any:
    if isinstance(mechanism, Listed):
        return [as_json(m.description) for m in mechanism]
    description = as_json(mechanism.description)
    return [description, mechanism._own_changes()] if isinstance(mechanism, Variants) else description


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
