from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from ._arrays import Array

operations: dict[str, tuple[str, str, bool]]

class Number:
    constant: float | None
    def apart(self) -> Number: ...
    def __neg__(self) -> Number: ...
    def larger(self, other: Number) -> Number: ...
    def sqrt(self) -> Number: ...
    def sin(self) -> Number: ...
    def cos(self) -> Number: ...
    def __add__(self, other: Number | float) -> Number: ...
    def __mul__(self, other: Number | float) -> Number: ...

class C99Function:
    declaration: str
    definition: str
    called: list[str]
    operations: list[tuple[str, int]]
    statements: int
    alive: int
    turns: bool

class Recording:
    driven: bool
    pfaffian_values: int
    def input(self, values: ArrayLike) -> list[Number]: ...
    def constant(self, x: float) -> Number: ...
    def call(
        self, operation: str, inputs: Sequence[Sequence[Number] | None], frame: str | None, expressed_in: str
    ) -> tuple[list[Number], Number]: ...
    def derivatives(self, results: Sequence[Number], inputs: Sequence[Number]) -> list[list[Number]]: ...
    def tasks(
        self,
        control: Any,
        parameters: Sequence[Number],
        call: Sequence[Number],
        time: Sequence[Number],
        q: Sequence[Number],
        v: Sequence[Number],
        z: Sequence[Number],
    ) -> tuple[list[list[Number]], Number]: ...
    def step(
        self,
        simulated: Any,
        dt: float,
        midpoint: bool,
        substeps: int,
        corrections: int,
        q: Sequence[Number],
        v: Sequence[Number],
        z: Sequence[Number],
        tau: Sequence[Number],
        time: Sequence[Number],
    ) -> tuple[list[list[Number]], Number]: ...
    def depends(self, results: Sequence[Number], inputs: Sequence[Number]) -> bool: ...
    def assume(self, x: Number, least: float) -> None: ...
    def assumptions(self, otherwise: float) -> Number: ...
    def status_of(self, results: Sequence[Number], status: Number, otherwise: float) -> Number: ...
    def values(self, numbers: Sequence[Number]) -> Array: ...
    def c99(
        self,
        name: str,
        inputs: Sequence[tuple[str, Sequence[Number]]],
        outputs: Sequence[tuple[str, Sequence[Number]]],
        status: Number | None,
    ) -> C99Function: ...

def recording(mechanism: Any, samples: int, single: bool) -> Recording: ...
def not_recorded(simulated: Any) -> str: ...
def turn(single: bool) -> str: ...
