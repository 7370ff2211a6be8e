"""Calls with one wrong argument. Every parameter of every public function gets a dozen wrong values, while all other arguments are valid.

Valid arguments are found by drawing from arguments.txt until a call returns.
"""

from __future__ import annotations

import contextlib
import io
import random
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from . import pieces
from .calls import FORCED, SKIPPED, Calls, Target
from .verdict import fault, in_argument

WRONG = (
    "None", "'x'", "''", "5", "-1", "2**70", "10**400", "math.nan", "1j", "[[1, 2], [3]]", "np.zeros((2, 3))", "object()", "{'x': 1}",
    "[None]", "lambda *x: None",
)  # fmt: skip
ABOUT = ("four_bar", "free_flyer", "double_pendulum", "stanford_arm")  # mechanisms, in turn
TRIES = 100


class OneWrong(Calls):
    """Search for valid calls of all functions with arguments, and for faulty errors if one argument is wrong."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(random.Random(seed))
        self.asked = [t for t in self.asked if t.parameters and t.name not in SKIPPED]

    def right_call(self, target: Target) -> tuple[list[str], dict[str, str], dict[str, Any]] | None:
        """Return a valid call: the lines of code before it, its arguments, and the names that these lines define.

        Returns None if no valid call was found.
        """
        for attempt in range(TRIES):
            self.about, self.optional = ABOUT[attempt % len(ABOUT)], self.rng.choice((0.0, 0.1, 0.3))
            arguments = self.arguments(target)
            before = [f"m = mechanism({self.about!r})", "q, v, a = state(m)"]
            if target.owner and re.search(r"\bx\b", target.template):
                before += self.receiver(target.owner)
            try:
                names = dict(vars(pieces))
                for line in before:
                    _run(line, names)
                _run(f"r = {target.call(arguments)}", dict(names))
            except Exception:
                continue
            return before, arguments, names
        return None

    def findings(self, target: Target, values: Sequence[str] = WRONG) -> list[tuple[str, list[str]]] | None:
        """Return the faults with programs that reproduce them; None if no valid call was found."""
        found = self.right_call(target)
        return None if found is None else list(self._findings(target, values, *found))

    def _findings(
        self, target: Target, values: Sequence[str], before: list[str], arguments: dict[str, str], names: dict[str, Any]
    ) -> Iterator[tuple[str, list[str]]]:
        for p in target.parameters:
            if p.name in FORCED or p.kind == p.VAR_KEYWORD:
                continue
            for value in values:
                line = f"r = {target.call(arguments | {p.name: value})}"
                try:
                    _run(line, dict(names))
                except Exception as error:
                    if (wrong := fault(error, target, strict=True)) and not in_argument(error, line):
                        yield f"{p.name}: {wrong}: {type(error).__name__}: {error}", [*before, line]


def _run(line: str, names: dict[str, Any]) -> None:
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        exec(compile(line, "<case>", "exec"), names)
