"""Command line: ``python -m benchmarks --help``."""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import sarrus

from . import tables


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the selected tables; return 1 if one of them fails."""
    options = _parser().parse_args(arguments)
    names = (
        [*tables.TABLES] if options.all or (options.smoke and not options.tables) else options.tables or ["dynamics"]
    )
    if options.plot and len(names) > 1:
        print("--plot draws one table", file=sys.stderr)
        return 2
    if options.without_peers:
        tables.hide_peers()
    run = tables.Run(
        2 if options.smoke else 1 if options.quick else 0,
        options.only,
        options.build_peer,
        tuple(options.peer_flags.split()),
    )
    facts = tables.facts(run)
    texts = [tables.told(facts)]
    print(texts[0])
    failed, seen = [], {}
    for name in dict.fromkeys(names):
        start = perf_counter()
        try:
            rows, text, seen[name] = measured(name, run, options.plot)
        except Exception as error:  # any error, so that the other tables are measured nevertheless
            traceback.print_exc()
            failed.append(f"{name}: {type(error).__name__}: {error}")
            continue
        texts.append(f"## {name}: {tables.TABLES[name]}\n\n{text}")
        print(f"{name}: {len(rows)} rows in {perf_counter() - start:.1f} s" if options.smoke else texts[-1], flush=True)
        if options.json:
            options.json.mkdir(parents=True, exist_ok=True)
            write_json(options.json / f"{name}.json", facts, rows)
    if options.seen:
        options.seen.write_text(json.dumps(_finite(seen)), encoding="utf-8")
    levels = {str(sarrus.build_info()["isa"]): seen}
    if not options.smoke:
        levels |= {level: seen_with(level, names, options) for level in tables.other_levels()}
    texts.append(tables.summary(levels))
    if not options.smoke:  # the numbers of a smoke test have no meaning
        print(texts[-1])
    if options.markdown:
        options.markdown.write_text("\n".join(texts), encoding="utf-8")
    for text in failed:
        print(f"failed: {text}", file=sys.stderr)
    if options.smoke and not options.without_peers:
        print("\n# The same without peers\n", flush=True)
        named = [f"--{name}" for name in names]
        again = [sys.executable, "-m", "benchmarks", "--smoke", "--without-peers", *named]
        return max(bool(failed), bool(subprocess.run(again, check=False).returncode))
    return bool(failed)


def measured(name: str, run: tables.Run, picture: Path | None = None) -> tuple[list[Any], str, dict[str, float | None]]:
    """Return the rows of a table, its text, and the measured values that have goals."""
    run.tell(f"---- {name}")
    module = tables.module(name)
    rows = list(module.rows(run))
    if hasattr(module, "markdown"):
        text, seen = module.markdown(rows), module.seen(rows) if hasattr(module, "seen") else {}
    else:
        text, seen = tables.markdown(name, rows), {row.what: row.seen for row in rows}
    if hasattr(module, "plot") and tables.installed("matplotlib"):
        if picture:
            module.plot(picture, rows, run)
        elif run.size == 2:
            with tempfile.TemporaryDirectory() as folder:
                module.plot(Path(folder) / "picture.png", rows, run)
    elif picture:
        raise ValueError("--plot needs a table with a picture, and matplotlib")
    return rows, text, seen


def seen_with(level: str, names: Sequence[str], options: argparse.Namespace) -> dict[str, dict[str, float | None]]:
    """Return the measured values that have goals with the kernels of another instruction set level, from a run in another process."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "seen.json"
        command = [sys.executable, "-m", "benchmarks", *(f"--{name}" for name in names), "--seen", str(file)]
        command += ["--quick"] * options.quick + ["--without-peers"] * options.without_peers
        command += [f"--only={options.only}", f"--peer-flags={options.peer_flags}"]
        subprocess.run(command, check=False, env={**os.environ, "SARRUS_ISA": level})
        values: dict[str, dict[str, float | None]] = (
            json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        )
    return values


def write_json(path: Path, facts: dict[str, Any], rows: list[Any]) -> None:
    """Write a line for each row; NaN and infinity, which JSON lacks, become null."""
    lines = ",\n".join(json.dumps(_finite(asdict(r) if is_dataclass(r) else r._asdict())) for r in rows)  # type: ignore[arg-type]
    path.write_text(f'{{"facts": {json.dumps(facts, indent=1)},\n"rows": [\n{lines}\n]}}\n', encoding="utf-8")


def _finite(x: Any) -> Any:
    if isinstance(x, dict):
        return {key: _finite(value) for key, value in x.items()}
    if isinstance(x, (list, tuple)):
        return [_finite(value) for value in x]
    return None if isinstance(x, float) and not math.isfinite(x) else x


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure sarrus and its peers in one run: tables, then a summary with the goals.",
    )
    group = parser.add_argument_group("tables")
    for name, text in tables.TABLES.items():
        group.add_argument(f"--{name}", dest="tables", action="append_const", const=name, help=text)
    group.add_argument("--all", action="store_true", help="measure all tables")
    group = parser.add_argument_group("measurement")
    group.add_argument("--quick", action="store_true", help="a tenth of the time: fewer and shorter repetitions")
    group.add_argument(
        "--smoke",
        action="store_true",
        help="check that the named tables (default: all) run, in their smallest form, with and without peers",
    )
    group.add_argument("--without-peers", action="store_true", help="ignore installed peers")
    group.add_argument(
        "--only",
        default="",
        metavar="WORDS",
        help="measure only these algorithms, models and groups of rows, or this problem of --engines",
    )
    group.add_argument("--build-peer", action="store_true", help="compile Pinocchio's C++ templates if necessary")
    group.add_argument("--peer-flags", default="", metavar="FLAGS", help="additional compiler flags for Pinocchio")
    group = parser.add_argument_group("files")
    group.add_argument("--json", type=Path, metavar="FOLDER", help="folder for TABLE.json of each table")
    group.add_argument("--seen", type=Path, metavar="FILE", help="JSON file for the measured values that have goals")
    group.add_argument("--markdown", type=Path, metavar="FILE", help="file for a copy of the output")
    group.add_argument("--plot", type=Path, metavar="FILE", help="file for the picture of the table, if it has one")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
