"""What every force element is: a dataclass, of whose fields the core's struct of the same name says of which sort each is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, make_dataclass
from typing import Any, ClassVar

import numpy as np

from .. import _core
from .._arrays import Array, checked_number, is_masked
from ..dynamics.loop_operations import LoopFunctions
from ..errors import ModelError, ShapeError
from ..laws import law_terms_of_runs

Function = Callable[..., Any]
# of each kind (key, sort, sign) of its fields
KINDS: dict[str, tuple[tuple[str, str, str], ...]] = _core.element_table()
TYPED = ("coordinate", "velocity", "frame", "direction", "constant", "number", "range", "law")  # sorts that say it all


@dataclass(frozen=True)
class Run:
    """What elements are told of the run besides the mechanism.

    Attributes
    ----------
    effort_limits : (nv,) or none; what they give in all along a velocity is kept within them
    start : configuration (nq,), or (runs, nq) of many, in which the run begins, from which defaults take the inertia that they feel; None: the
        neutral one
    rows, runs : which of so many runs are of the mechanism, where several are side by side; None: all
    """

    effort_limits: Sequence[float] = ()
    start: Any = None
    rows: Any = None
    runs: int = 0


class Element:
    """A force element; its fields are those that its kind has in the core, or `_values` makes these of them."""

    one_a_velocity: ClassVar[bool] = False
    one_a_run: ClassVar[bool] = False
    can_be_sampled: ClassVar[bool] = False  # whether a clock may ask it
    rigid: ClassVar[bool] = False  # it acts in steps of method="contact" alone
    stiff: ClassVar[bool] = False  # its friction is too stiff for explicit steps of any length that one would ask for
    stores: ClassVar[bool] = False  # it gives back at most what it took

    @property
    def _kind(self) -> str:
        """Its name in the core."""
        return next(kind.__name__ for kind in type(self).__mro__ if kind.__name__ in KINDS)

    @property
    def native(self) -> bool:
        """True if it runs in C++ during a simulation."""
        return True

    @property
    def _place(self) -> str:
        """The joint or frame at which it is."""
        return str(getattr(self, "joint", getattr(self, "frame", "")))

    def _values(self, mechanism: LoopFunctions, run: Run) -> dict[str, Any]:
        """Of fields in the core that are none of its own, or have no value yet."""
        return {}


ForceElement = Element
Term = dict[str, Any]


def declared(kind: str, module: str) -> type[Element]:
    """The class of a kind that has none in Python: its fields, as the core's struct names them."""
    rows = KINDS[kind]
    described = ", ".join(" ".join(filter(None, (sign, key, f"({sort})"))) for key, sort, sign in rows)
    return make_dataclass(
        kind,
        [*((key, Any) for key, _, _ in rows), ("index", int, field(default=0, kw_only=True))],
        bases=(Element,),
        namespace={"__doc__": f"Fields: {described}.", "__module__": module},
        frozen=True,
        eq=False,
    )


def functions_and_elements(controller: Any) -> tuple[list[Function], list[Element]]:
    """Of one controller, or several in a list: functions, which Python answers at each evaluation, and elements."""
    several = list(controller) if isinstance(controller, (list, tuple)) else [] if controller is None else [controller]
    functions: list[Function] = []
    elements: list[Element] = []
    for c in several:
        if isinstance(c, type):
            raise TypeError(f"{c.__name__} is a class: give one of it, {c.__name__}(...)")
        if isinstance(c, Element) and c.native:
            elements.append(c)
        elif callable(c):  # also a TaskControl with functions for targets
            functions.append(c)
        else:
            raise TypeError(
                f"no element of control: {c!r}; a controller is a function (t, q, v) -> tau, an element such as "
                "sarrus.control.PID, or a list of these"
            )
    return functions, elements


@dataclass(eq=False)
class ForceElements:
    """Terms of force elements in the order of their kinds, their numbers (..., n), and functions that are asked at samples."""

    terms: list[Term] = field(default_factory=list)
    effort_limits: list[float] = field(default_factory=list)
    numbers: list[Array] = field(default_factory=list)
    sampled: list[list[Function]] = field(default_factory=list)
    width: int = 0  # of a row of parameters
    run: Run = field(default_factory=Run)
    names: dict[str, slice] = field(default_factory=dict)  # of numbers of elements, where they stand in a row

    def named(self, name: str, first: int) -> int:
        """The numbers from the first on, under a name that no others have."""
        count = sum(known.partition(" #")[0] == name for known in self.names)
        self.names[f"{name} #{count + 1}" if count else name] = slice(first, self.width)
        return first

    def add(self, *numbers: Array) -> int:
        """Numbers (..., n) for the end of a row of parameters; where the first one stands there."""
        return self._append(*(self._those(x) if x.ndim > 1 else x for x in numbers))

    def _append(self, *numbers: Array) -> int:
        first = self.width
        self.numbers += numbers
        self.width += sum(x.shape[-1] for x in numbers)
        return first

    def add_law(self, law: Any, what: str) -> Any:
        """Of a law, or of several, one a run."""
        several = isinstance(law, (list, tuple)) or np.ndim(law) == 1
        terms, whose = law_terms_of_runs(self._those(law) if several else law, what, self.width)
        self._append(*(x[..., None] for x in whose))
        return terms

    def _those(self, of_runs: Any) -> Any:
        """Of what there is one of a run, those of the runs that are of the mechanism."""
        rows, runs = self.run.rows, self.run.runs
        if rows is None or len(of_runs) == 1:
            return of_runs
        if len(of_runs) != runs:
            raise ShapeError(f"numbers and laws that differ from run to run are {len(of_runs)}, with {runs} mechanisms")
        return of_runs[rows] if isinstance(of_runs, np.ndarray) else [of_runs[k] for k in rows]

    @property
    def parameters(self) -> Array:
        """(parameters,), or (runs, parameters) if some number differs from run to run."""
        if not self.numbers:
            return np.zeros(0)
        if all(x.ndim == 1 for x in self.numbers):
            return np.concatenate(self.numbers)
        try:
            runs = np.broadcast_shapes(*(x.shape[:-1] for x in self.numbers))
            return np.ascontiguousarray(
                np.concatenate([np.broadcast_to(x, (*runs, x.shape[-1])) for x in self.numbers], axis=-1)
            )
        except ValueError:
            sizes = sorted({x.shape[:-1] for x in self.numbers if x.ndim > 1})
            raise ShapeError(f"numbers that differ from run to run must be equally many; got shapes {sizes}") from None

    def as_tuple(self) -> tuple[Any, ...]:
        """Terms and parameters, for a checkpoint."""
        return self.terms, self.effort_limits, self.parameters.tolist()

    @classmethod
    def of(cls, mechanism: LoopFunctions, elements: Sequence[Element], run: Run | None = None) -> ForceElements:
        """What the core takes of elements; ModelError if they do not fit the mechanism."""
        run = Run() if run is None else run
        made = cls(effort_limits=list(run.effort_limits), run=run)
        if elements:
            from .terms import terms_of

            made.terms = terms_of(mechanism, elements, run, made)
        return made


# ---- numbers that may differ from run to run -------------------------------------------------------------------------


def array(what: str, value: Any, *, finite: bool = True) -> Array:
    if is_masked(value):
        raise TypeError(f"{what} has masked entries, whose hidden values would count; give .filled(value)")
    try:
        x = np.asarray(value)
    except ValueError:  # rows of unequal lengths
        x = np.asarray(None)
    if x.dtype.kind not in "fiu" and x.size:
        raise ModelError(f"{what} must be a number, or one a run; got {value!r}")
    if finite and not np.isfinite(x.astype(np.float64)).all():
        raise ModelError(f"{what} must be finite; got {value!r}")
    return x.astype(np.float64)


def number(what: str, value: Any, sign: str = "") -> Array:
    """() or (runs,), of a sign that the core knows; ModelError says what is wrong."""
    if type(value) is float and 0.0 < value < np.inf:  # as most are, and right whatever the sign
        return np.array(value)
    sign, _, infinite = sign.partition(" or ")
    x = array(what, value, finite=not infinite)
    if x.ndim > 1:
        raise ShapeError(f"{what} is a number, or (runs,); got {x.shape}")
    if sign and not ((x > 0.0) if sign == "positive" else (x >= 0.0)).all():  # so that NaN fails too
        raise ModelError(f"{what} must {'be positive' if sign == 'positive' else 'not be negative'}; got {value!r}")
    return x


def numbers_of(element: Any, **signs: str) -> list[Array]:
    """Some of an element's numbers, by their names."""
    return [number(f"{name} of {type(element).__name__}", getattr(element, name), sign) for name, sign in signs.items()]


def constant(what: str, value: Any, sign: str = "") -> float:
    """The same in all runs."""
    try:
        x = checked_number(what, value, "")
    except (TypeError, ValueError):
        raise ModelError(f"{what} must be a finite number; got {value!r}") from None
    return float(number(what, x, sign))


def bounds(what: str, value: Any) -> list[Array]:
    """Lower and upper, each a number or (runs,), or infinite."""
    if not isinstance(value, (tuple, list, np.ndarray)) or len(value) != 2:
        raise ModelError(f"{what} are two, (lower, upper); got {value!r}")
    lower, upper = (array(what, x, finite=False) for x in value)
    if max(lower.ndim, upper.ndim) > 1:
        raise ShapeError(f"{what} are numbers, or (runs,) each; got {lower.shape} and {upper.shape}")
    # so that NaN fails too; an effort must be left between them
    if not ((lower < np.inf).all() and (upper > -np.inf).all()) or less(upper, lower):
        raise ModelError(f"{what} are (lower, upper), the one no greater than the other; got {value!r}")
    return [lower, upper]


def less(x: Array, y: Array) -> bool:
    """Whether some x is less than its y; where they are not equally many, ForceElements.parameters says so."""
    try:
        return bool((x < y).any())
    except ValueError:
        return False
