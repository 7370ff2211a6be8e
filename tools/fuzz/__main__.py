"""Fuzzing of every public function and reader, with valid, nearly valid and hostile arguments.

    python -m tools.fuzz [--minutes 60] [--seed N] [--only calls|files|cli|control|contact|variants|adapters] [--strict]

A case is a short Python program, stored as text, so that a finding can be reproduced by running its text. A child process reports each case before
executing it, so that crashes and hangs can be attributed to a case. The kinds of cases alternate:

calls : the public functions, constructors, methods, properties, copies and pickles, found by inspection. Arguments follow from annotations and
defaults, and from arguments.txt, which has valid values by parameter name, and hostile values
files : model files (URDF, SDF, MJCF, USD) generated from a grammar, and trajectory files (.npz, .csv), with changed elements, numbers, members and
        bytes. Also mechanisms that are written and read again
cli   : command lines, generated from the options of the parser
control, contact, variants : random task controllers, force elements in short runs, variants in one batch. Results must obey the
        laws of motion and the limits, unless an error, a status or a warning reports the violation
adapters : functions for PyTorch, JAX, CasADi, Gymnasium and Crocoddyl, as far as these are installed, and generated code

Findings are: a crash; a call of more than `LIMIT` seconds; an exception that is neither a sarrus error, nor named in the function's
docstring, nor a TypeError, nor a ValueError that sarrus raised (--strict: TypeErrors, too); a warning of NumPy; NaN or an open loop
without a report; a changed argument. Several findings at the same line of code count as one. The exit code is 1 if there were findings.
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

LIMIT = 60.0  # time limit of a case [s]
MEMORY = 8 << 30  # address space of a child [bytes]; a MemoryError is not a finding, but the end of the process is
BATCH = {
    "calls": 400,
    "files": 150,
    "cli": 25,
    "control": 300,
    "contact": 100,
    "variants": 40,
    "adapters": 60,
}  # number of cases of a child
TURNS = ("calls", "files", "adapters", "control", "calls", "contact", "cli", "variants")


def child(kind: str, seed: str, count: int, report: Any) -> None:
    """Run `count` cases; write a line of JSON before each, and one for each finding."""
    rng = random.Random(f"{kind} {seed}")
    calls, programs = (
        Calls(rng) if kind == "calls" else None,
        {"files": file_program, "cli": command_program, "adapters": adapter_program},
    )
    answered: set[str] = set()
    space = vars(pieces)

    def write(**message: Any) -> None:
        report.write(json.dumps(message) + "\n")
        report.flush()

    for _ in range(count):
        lines, target = (
            calls.program() if calls else programs[kind](rng) if kind in programs else motion_program(kind, rng)
        )
        write(program=lines)
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
                continue  # the case continues, because a builder must remain usable after an error
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
            write(finding=trouble[0], message=trouble[1], program=done)
    write(answered=sorted(answered))


def main() -> int:
    parser = argparse.ArgumentParser("fuzz", description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=60.0, help="duration [min] (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="seed of the random cases (default: a new one)")
    parser.add_argument("--only", choices=BATCH, help="one kind of case (default: all)")
    parser.add_argument(
        "--child", nargs=2, metavar=("KIND", "SEED"), help="run the cases of a child again, by the names in a finding"
    )
    parser.add_argument("--strict", action="store_true", help="TypeErrors must name the wrong argument, too")
    options = parser.parse_args()
    if options.strict:
        os.environ[STRICT] = "1"
    os.environ.setdefault("MPLBACKEND", "agg")
    if options.child:
        report = os.fdopen(os.dup(1), "w")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        faulthandler.enable()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            child(*options.child, BATCH[options.child[0]], report)
        return 0
    seed = random.randrange(10**6) if options.seed is None else options.seed
    print(f"fuzz: seed {seed}, {len(surface())} public functions, constructors, properties", flush=True)
    end, turn, findings, counts, answered = (
        time.monotonic() + 60 * options.minutes,
        0,
        {},
        dict.fromkeys(BATCH, 0),
        set(),
    )
    while time.monotonic() < end:
        # each kind gets an equal fraction of the time, also in a short run
        until = min(end, time.monotonic() + max(60 * options.minutes / (1 if options.only else len(TURNS)), 1.0))
        kind = options.only or TURNS[turn % len(TURNS)]
        name = [kind, f"{seed}.{turn}"]
        turn += 1
        with tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "tools.fuzz", "--child", *name], stdout=subprocess.PIPE, stderr=errors, text=True
            )
            lines, last, over = process.stdout, [], False
            for line in lines or ():
                message = json.loads(line)
                over = over or "answered" in message
                if "finding" in message:
                    note(findings, message["finding"], message["message"], message["program"], name)
                elif "program" in message:
                    counts[kind] += 1
                    last = message["program"]
                answered |= set(message.get("answered", ()))
                if time.monotonic() > until:
                    break
            else:
                code = process.wait()
                errors.seek(0)
                output = errors.read()
                slow = "Timeout" in output and not hangs(last)
                if (code or not over) and not slow:
                    block = output[
                        max(output.find("Current thread"), output.rfind("\nThread 0x")) :
                    ]  # the part of the report about the thread that ran the case
                    where = re.search(rf'File ".*{os.sep}sarrus{os.sep}(\S+)", line (\d+) in (\w+)', block)
                    spot = (
                        f"{where[1]}:{where[2]} in {where[3]}"
                        if where
                        else re.sub(r"\(.*", "", (last or ["the end"])[-1])
                    )
                    event = "a hang" if "Timeout" in output else f"a crash (exit code {code})"
                    messages = output.strip().splitlines()
                    note(
                        findings,
                        f"{event} at {spot}",
                        "\n".join(messages[-4:] if code == 1 and "Timeout" not in output else messages[:8]),
                        last,
                        name,
                    )
            process.kill()
            process.wait()
    total = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    print(
        f"\nfuzz: {total} in {options.minutes:g} min; {len(answered)} functions answered; {len(findings)} findings; seed {seed}"
    )
    return 1 if findings else 0


def hangs(program: list[str]) -> bool:
    """Return True if a program also hangs when it runs alone. On a busy machine, a case may be slow only because of other processes."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    source = "\n".join(["from tools.fuzz.pieces import *", *program])
    try:
        subprocess.run([sys.executable, "-c", source], timeout=LIMIT, check=False, **quiet)
    except subprocess.TimeoutExpired:
        return True
    return False


def note(findings: dict[str, int], label: str, message: str, program: list[str], name: list[str]) -> None:
    """Count a finding, and print it if it is the first one with this label."""
    findings[label] = findings.get(label, 0) + 1
    if findings[label] == 1:
        print(
            f"\n---- finding {len(findings)}: {label}\n{message}\nfrom tools.fuzz.pieces import *  # --child {' '.join(name)}"
        )
        print("\n".join(program), flush=True)


if __name__ == "__main__":
    sys.exit(main())
