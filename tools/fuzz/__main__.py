"""Fuzzing: every public function and reader, with arguments that are right, nearly right and hostile.

    python -m tools.fuzz [--minutes 60] [--seed N] [--only calls|files|cli|control|contact|variants|adapters] [--strict]

A case is a short program in Python, as text, so that a finding is its own reproducer. A child process announces each case and runs it:
whatever ends the child, or keeps it busy, is known. The kinds take turns:

calls : what the package exports is found by inspection, constructors, methods, properties, copies and pickles. arguments.txt has right
        values by a parameter's name, which its annotation or default adds to, and hostile ones
files : URDF, SDF, MJCF and USD from a grammar, .npz and .csv of trajectories; then elements, numbers, members and bytes of them change. Mechanisms
        that are written and read again
cli   : command lines, from the parser's own options
control, contact, variants : random controllers by tasks, force elements in short runs, changed copies side by side; what comes out obeys the
        laws of motion and the limits, or an error, a status or a warning says why not
adapters : the same questions in arrays of PyTorch, JAX, CasADi, Gymnasium and Crocoddyl, as far as they are installed, and generated code

A finding is a crash; a call of more than `LIMIT` seconds; an exception that is neither of sarrus nor named in the function's docstring nor
a TypeError nor a ValueError that sarrus raised itself (--strict: the same of TypeErrors); a warning of NumPy's; NaN, or an open loop,
without a word; an argument that changed. Findings at the same place count once. Exit code: 1 if there were any.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import faulthandler
import io
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from typing import Any

import numpy as np

import sarrus

from . import pieces
from .adapters import adapter_program
from .calls import Calls, surface
from .files import command_program, file_program
from .motions import motion_program
from .verdict import STRICT, fault, in_argument, place, silent

LIMIT = 60.0  # [s] of one case
MEMORY = 8 << 30  # [bytes] of addresses that a child may have: MemoryError is an answer, the end of the process is none
BATCH = {
    "calls": 400,
    "files": 150,
    "cli": 25,
    "control": 300,
    "contact": 100,
    "variants": 40,
    "adapters": 60,
}  # cases of one child
TURNS = ("calls", "files", "adapters", "control", "calls", "contact", "cli", "variants")


def child(kind: str, seed: str, count: int, report: Any) -> None:
    """Run this many cases. A line in JSON before each, and one for each finding."""
    rng = random.Random(f"{kind} {seed}")
    calls, programs = (
        Calls(rng) if kind == "calls" else None,
        {"files": file_program, "cli": command_program, "adapters": adapter_program},
    )
    answered: set[str] = set()
    space = vars(pieces)

    def tell(**what: Any) -> None:
        report.write(json.dumps(what) + "\n")
        report.flush()

    for _ in range(count):
        lines, target = (
            calls.program() if calls else programs[kind](rng) if kind in programs else motion_program(kind, rng)
        )
        tell(program=lines)
        faulthandler.dump_traceback_later(LIMIT, exit=True)
        names, done, trouble, bare = dict(space), [], None, ".__new__(" in "".join(lines)
        for line in lines:
            if "q" in names and line.startswith("r ="):
                before = {k: copy.deepcopy(names[k]) for k in "qva"}
            try:
                with (
                    warnings.catch_warnings(),
                    contextlib.redirect_stdout(io.StringIO()),
                    contextlib.redirect_stderr(io.StringIO()),
                ):
                    warnings.simplefilter("ignore")
                    warnings.simplefilter("error", RuntimeWarning)
                    exec(compile(line, "<case>", "exec"), names)
            except Exception as error:
                hit, _ = place(error)
                wrong = None if bare or in_argument(error, line) else fault(error, target)
                if wrong is not None:
                    text = f"{type(error).__name__}: {str(error)[:300]}"
                    trouble = (f"{wrong}: {type(error).__name__} at {hit or text}", text)
                    if isinstance(error, AssertionError):
                        trouble = (
                            f"AssertionError: {re.sub(r'[0-9]+', '', text.rpartition(':')[2])[:80]} {target.key}",
                            text,
                        )
                    done.append(line)
                    break
                if not line.startswith("x."):
                    break
                continue  # a builder that has refused something takes the next
            done.append(line)
            if line.startswith("r ="):
                answered.add(target.key)
                wrong = silent(target, names["r"], names, line)
                if bare and target.owner is sarrus.Mechanism and line.startswith("r = x."):
                    wrong = "an answer before __init__"
                if wrong is None and "q" in names and "out=" not in line and "lambda" not in line:
                    same = all(np.array_equal(before[k], names[k], equal_nan=True) for k in "qva")
                    wrong = None if same else "an argument changed"
                if wrong is not None:
                    trouble = (f"{wrong.partition(' by')[0]}: {target.key}", wrong)
                    break
                if calls:
                    calls.keep(done, names["r"])
                    for run in ("touch(r)",) * isinstance(names["r"], sarrus.Mechanism):
                        lines.append(run)
                if isinstance(names["r"], sarrus.results.View):
                    with contextlib.suppress(AttributeError):
                        names["r"].close()
        if trouble:
            tell(finding=trouble[0], message=trouble[1], program=done)
    tell(answered=sorted(answered))


def main() -> int:
    parser = argparse.ArgumentParser("fuzz", description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="(default: a new one)")
    parser.add_argument("--only", choices=BATCH, help="one kind of case (default: all)")
    parser.add_argument(
        "--child", nargs=2, metavar=("KIND", "SEED"), help="run one child's cases again, as a finding names them"
    )
    parser.add_argument("--strict", action="store_true", help="TypeErrors must say which argument is wrong, too")
    given = parser.parse_args()
    if given.strict:
        os.environ[STRICT] = "1"
    os.environ.setdefault("MPLBACKEND", "agg")
    if given.child:
        report = os.fdopen(os.dup(1), "w")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        faulthandler.enable()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            child(*given.child, BATCH[given.child[0]], report)
        return 0
    seed = random.randrange(10**6) if given.seed is None else given.seed
    print(f"fuzz: seed {seed}, {len(surface())} public functions, constructors, properties", flush=True)
    end, turn, findings, counts, answered = time.monotonic() + 60 * given.minutes, 0, {}, dict.fromkeys(BATCH, 0), set()
    while time.monotonic() < end:
        # however few minutes there are, each kind has its turn
        until = min(end, time.monotonic() + max(60 * given.minutes / (1 if given.only else len(TURNS)), 1.0))
        kind = given.only or TURNS[turn % len(TURNS)]
        name = [kind, f"{seed}.{turn}"]
        turn += 1
        with tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "tools.fuzz", "--child", *name], stdout=subprocess.PIPE, stderr=errors, text=True
            )
            lines, last, over = process.stdout, [], False
            for line in lines or ():
                told = json.loads(line)
                over = over or "answered" in told
                if "finding" in told:
                    note(findings, told["finding"], told["message"], told["program"], name)
                elif "program" in told:
                    counts[kind] += 1
                    last = told["program"]
                answered |= set(told.get("answered", ()))
                if time.monotonic() > until:
                    break
            else:
                code = process.wait()
                errors.seek(0)
                said = errors.read()
                slow = "Timeout" in said and not hangs(last)
                if (code or not over) and not slow:
                    block = said[
                        max(said.find("Current thread"), said.rfind("\nThread 0x")) :
                    ]  # the one that ran the case
                    where = re.search(rf'File ".*{os.sep}sarrus{os.sep}(\S+)", line (\d+) in (\w+)', block)
                    spot = (
                        f"{where[1]}:{where[2]} in {where[3]}"
                        if where
                        else re.sub(r"\(.*", "", (last or ["the end"])[-1])
                    )
                    what = "a hang" if "Timeout" in said else f"a crash (exit code {code})"
                    told = said.strip().splitlines()
                    note(
                        findings,
                        f"{what} at {spot}",
                        "\n".join(told[-4:] if code == 1 and "Timeout" not in said else told[:8]),
                        last,
                        name,
                    )
            process.kill()
            process.wait()
    total = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    print(
        f"\nfuzz: {total} in {given.minutes:g} min; {len(answered)} functions answered; {len(findings)} findings; seed {seed}"
    )
    return 1 if findings else 0


def hangs(program: list[str]) -> bool:
    """Whether it does so alone, too: a busy machine, or one that slept, makes cases wait."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    source = "\n".join(["from tools.fuzz.pieces import *", *program])
    try:
        subprocess.run([sys.executable, "-c", source], timeout=LIMIT, check=False, **quiet)
    except subprocess.TimeoutExpired:
        return True
    return False


def note(findings: dict[str, int], what: str, message: str, program: list[str], name: list[str]) -> None:
    """Print a finding where it is the first at its place."""
    findings[what] = findings.get(what, 0) + 1
    if findings[what] == 1:
        print(
            f"\n---- finding {len(findings)}: {what}\n{message}\nfrom tools.fuzz.pieces import *  # --child {' '.join(name)}"
        )
        print("\n".join(program), flush=True)


if __name__ == "__main__":
    sys.exit(main())
