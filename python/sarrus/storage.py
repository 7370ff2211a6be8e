"""Trajectories in files.

.npz    all that a trajectory was made from, as arrays; what are no arrays as JSON; description and checkpoint pickled
.csv    a table with a row per sample: t, q:joint, v:joint, tau:joint if anything acts, energy, loop_error

Readers return the arguments of a trajectory by name.
"""

from __future__ import annotations

import csv
import io
import json
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .errors import ModelError
from .mechanism import Mechanism
from .state import Array

FORMAT = 1  # of .npz files


def suffix(path: Path) -> str:
    """How the name ends: .npz or .csv, else a ValueError."""
    ending = path.suffix.lower()
    if ending not in (".npz", ".csv"):
        raise ValueError(f"a trajectory is a .npz or a .csv file; got '{path.name}'")
    return ending


def write_npz(path: Path, given: Mapping[str, Any]) -> None:
    """Write the arguments of a trajectory; `efforts` is an array or None."""
    mechanism: Mechanism = given["mechanism"]
    try:
        pickled = pickle.dumps((mechanism.description, given["checkpoint"]))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ModelError(
            f"'{mechanism.name}' holds a function that cannot be pickled ({error}): save as .csv, "
            "or define the function at the top of a module"
        ) from error
    events = given["events"]
    notes = {"format": FORMAT, "statistics": given["statistics"], "status": given["status"], "events": list(events)}
    samples = {name: given[name] for name in ("t", "q", "v", "memory")} | {"tau": given["efforts"]}
    arrays: dict[str, Any] = {name: x for name, x in samples.items() if x is not None}
    arrays |= {f"event_{k}": at for k, at in enumerate(events.values())}
    arrays |= {"notes": np.array(json.dumps(notes, default=_plain)), "pickled": np.frombuffer(pickled, np.uint8)}
    with path.open("wb") as file:
        np.savez(file, **arrays)


def read_npz(path: Path, mechanism: Mechanism | None) -> dict[str, Any]:
    """With a mechanism nothing is unpickled, and the checkpoint is left out."""
    foreign = f"{path}: not a trajectory that sarrus saved"
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            arrays = dict(file)
        notes = json.loads(arrays.pop("notes").item())
        pickled = arrays.pop("pickled").tobytes()
    except (ValueError, KeyError, EOFError, AttributeError, OSError) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise ValueError(foreign) from error
    if notes.get("format") != FORMAT:
        raise ValueError(f"{path}: format {notes.get('format')!r}; this sarrus reads format {FORMAT}")
    checkpoint = None
    if mechanism is None:
        description, checkpoint = pickle.loads(pickled)
        mechanism = Mechanism(description)
    return {
        "mechanism": mechanism,
        **{name: arrays[name] for name in ("t", "q", "v")},
        "memory": arrays.get("memory"),
        "efforts": arrays.get("tau"),
        "statistics": notes["statistics"],
        "status": notes["status"],
        "events": {name: arrays[f"event_{k}"] for k, name in enumerate(notes["events"])},
        "checkpoint": checkpoint,
    }


def write_csv(path: Path, names: Sequence[str], blocks: Iterable[Array]) -> None:
    """Write a table with these columns, block of rows by block."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        for block in blocks:
            writer.writerows(block.tolist())


def read_csv(path: Path, mechanism: Mechanism) -> dict[str, Any]:
    """Columns must be those of the mechanism."""
    nq, nv = mechanism.nq, mechanism.nv
    with path.open(newline="", encoding="utf-8") as file:
        head = next(csv.reader(file), [])
        acts = len(head) == len(columns(mechanism, True))
        if head != columns(mechanism, acts):
            missing = [name for name in columns(mechanism, acts) if name not in head]
            raise ValueError(
                f"{path}: its columns are not those of '{mechanism.name}'"
                + (f"; column '{missing[0]}' is missing" if missing else "")
            )
        lines = file.read()
    table = np.loadtxt(io.StringIO(lines), delimiter=",", ndmin=2) if lines else np.empty((0, len(head)))
    t, q, v, tau, _ = np.split(table, np.cumsum([1, nq, nv, nv if acts else 0]), axis=1)
    efforts = tau if acts else None
    return {"mechanism": mechanism, "t": t[:, 0], "q": q, "v": v, "efforts": efforts, "status": "unknown"}


def columns(mechanism: Mechanism, acts: bool) -> list[str]:
    """Of the table; those of tau only where something acts."""
    named = ["t", *_entries(mechanism, "q"), *_entries(mechanism, "v")]
    return [*named, *(_entries(mechanism, "v", "tau") if acts else ()), "energy", "loop_error"]


def _entries(mechanism: Mechanism, space: str, shown: str = "") -> Iterator[str]:
    """Names of the entries of q or v."""
    for name in mechanism.joints:
        joint = mechanism.joint(name)
        size = joint.nq if space == "q" else joint.nv
        yield from (f"{shown or space}:{name}" + (f":{k}" if size > 1 else "") for k in range(size))


def _plain(value: Any) -> Any:
    """NumPy's numbers, for JSON."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return str(value)
