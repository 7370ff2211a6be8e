"""Base class of force elements, which are dataclasses; their fields are checked by the core's struct of the same name."""

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
# (name, category, required sign) of the fields of each kind of element; the category determines how a value is converted
KINDS: dict[str, tuple[tuple[str, str, str], ...]] = _core.element_table()
# categories of fields whose values are converted without code of the element's class
TYPED = ("coordinate", "velocity", "frame", "direction", "constant", "number", "range", "law")


@dataclass(frozen=True)
class Run:
    """Data of a run on which elements depend, in addition to the mechanism.

    Attributes
    ----------
    effort_limits : (nv,) limits of the sum of all efforts along each velocity, or empty
    start : initial configuration (nq,), or (runs, nq), in which effective inertias for default parameters are computed; None: the neutral
        configuration
    rows, runs : if several mechanisms are simulated in parallel, the indices of the runs of this mechanism, and the number of all runs; None: all
        runs
    rigid : True if end stops are rigid, that is, constraints of the time steps
    """

    effort_limits: Sequence[float] = ()
    start: Any = None
    rows: Any = None
    runs: int = 0
    rigid: bool = False


class Element:
    """Force element.

    Its attributes are the fields of the core's struct of its kind. `_values` computes fields that are not attributes.
    """

    unique_per_joint: ClassVar[bool] = False
    unique: ClassVar[bool] = False
    can_be_sampled: ClassVar[bool] = False  # allowed in SampleAndHold
    rigid: ClassVar[bool] = False  # requires method="contact"
    stiff: ClassVar[bool] = False  # too stiff for explicit steps of any usual length
    stores: ClassVar[bool] = False  # returns at most the energy that it absorbed

    @property
    def _kind(self) -> str:
        """Name of the kind in the core."""
        return next(kind.__name__ for kind in type(self).__mro__ if kind.__name__ in KINDS)

    @property
    def native(self) -> bool:
        """True if the element runs in C++ during a simulation."""
        return True

    @property
    def _place(self) -> str:
        """Name of the joint or frame at which the element acts."""
        return str(getattr(self, "joint", getattr(self, "frame", "")))

    def _values(self, mechanism: LoopFunctions, run: Run) -> dict[str, Any]:
        """Return values of the core's fields that are not attributes, or whose attribute is None."""
        return {}


ForceElement = Element
Term = dict[str, Any]


def declared(kind: str, module: str) -> type[Element]:
    """Create a class for a kind of the core that has no class in Python, with the fields of the core's struct."""
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
    """Split a controller, or a list of controllers, into Python functions and force elements."""
    several = list(controller) if isinstance(controller, (list, tuple)) else [] if controller is None else [controller]
    functions: list[Function] = []
    elements: list[Element] = []
    for c in several:
        if isinstance(c, type):
            raise TypeError(f"controller: {c.__name__} is a class; expected an instance, {c.__name__}(...)")
        if isinstance(c, Element) and c.native:
            elements.append(c)
        elif callable(c):  # including a TaskControl whose targets are Python functions
            functions.append(c)
        else:
            raise TypeError(
                f"controller must be a function (t, q, v) -> tau, an element such as sarrus.control.PID, or a list of these; got {c!r}"
            )
    return functions, elements


@dataclass(eq=False)
class ForceElements:
    """Core input for force elements, in the order of their types: structs, parameters (..., n), and sampled functions."""

    terms: list[Term] = field(default_factory=list)
    effort_limits: list[float] = field(default_factory=list)
    numbers: list[Array] = field(default_factory=list)
    sampled: list[list[Function]] = field(default_factory=list)
    width: int = 0  # length of a row of parameters
    run: Run = field(default_factory=Run)
    names: dict[str, slice] = field(default_factory=dict)  # name of a parameter -> its slice in a row of parameters

    def named(self, name: str, first: int) -> int:
        """Register a unique name for the parameters from index `first` to the end of the row."""
        count = sum(existing.partition(" #")[0] == name for existing in self.names)
        self.names[f"{name} #{count + 1}" if count else name] = slice(first, self.width)
        return first

    def add(self, *numbers: Array) -> int:
        """Append parameters (..., n) to the row of parameters, and return the index of the first."""
        return self._append(*(self._for_rows(x) if x.ndim > 1 else x for x in numbers))

    def _append(self, *numbers: Array) -> int:
        first = self.width
        self.numbers += numbers
        self.width += sum(x.shape[-1] for x in numbers)
        return first

    def add_law(self, law: Any, label: str) -> Any:
        """Return the core's input for a time function, or for a sequence with a time function for each run."""
        several = isinstance(law, (list, tuple)) or np.ndim(law) == 1
        terms, numbers = law_terms_of_runs(self._for_rows(law) if several else law, label, self.width)
        self._append(*(x[..., None] for x in numbers))
        return terms

    def _for_rows(self, per_run: Any) -> Any:
        """Return the items of a sequence for the runs of this mechanism; the sequence has an item for each run."""
        rows, runs = self.run.rows, self.run.runs
        if rows is None or len(per_run) == 1:
            return per_run
        if len(per_run) != runs:
            raise ShapeError(
                f"values that differ from run to run must have one item for each of the {runs} runs; got {len(per_run)}"
            )
        return per_run[rows] if isinstance(per_run, np.ndarray) else [per_run[k] for k in rows]

    @property
    def parameters(self) -> Array:
        """Row (parameters,), or rows (runs, parameters) if a parameter differs between runs."""
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
            raise ShapeError(
                f"parameters that differ from run to run must have the same number of runs; got shapes {sizes}"
            ) from None

    def as_tuple(self) -> tuple[Any, ...]:
        """Return the structs and parameters as a tuple, which a checkpoint stores."""
        return self.terms, self.effort_limits, self.parameters.tolist()

    @classmethod
    def of(cls, mechanism: LoopFunctions, elements: Sequence[Element], run: Run | None = None) -> ForceElements:
        """Return the core's input for these elements; raise ModelError if they do not fit the mechanism."""
        run = Run() if run is None else run
        forces = cls(effort_limits=list(run.effort_limits), run=run)
        if elements:
            from .terms import terms_of

            forces.terms = terms_of(mechanism, elements, run, forces)
        return forces


# ---- numbers that may differ from run to run -------------------------------------------------------------------------


def array(label: str, value: Any, *, finite: bool = True) -> Array:
    if is_masked(value):
        raise TypeError(f"{label} has masked entries, whose hidden values would be used; pass .filled(value)")
    try:
        x = np.asarray(value)
    except ValueError:  # rows of unequal lengths
        x = np.asarray(None)
    if x.dtype.kind not in "fiu" and x.size:
        raise ModelError(f"{label} must be a number, or (runs,) numbers; got {value!r}")
    if finite and not np.isfinite(x.astype(np.float64)).all():
        raise ModelError(f"{label} must be finite; got {value!r}")
    return x.astype(np.float64)


def number(label: str, value: Any, sign: str = "") -> Array:
    """Return a checked number () or (runs,) with the required `sign`: "", "positive" or "not negative", optionally followed by " or infinite"."""
    if type(value) is float and 0.0 < value < np.inf:  # the usual case, valid for every required sign
        return np.array(value)
    sign, _, infinite = sign.partition(" or ")
    x = array(label, value, finite=not infinite)
    if x.ndim > 1:
        raise ShapeError(f"{label} must be a number, or (runs,); got {x.shape}")
    if sign and not ((x > 0.0) if sign == "positive" else (x >= 0.0)).all():  # so that NaN fails too
        raise ModelError(f"{label} must {'be positive' if sign == 'positive' else 'not be negative'}; got {value!r}")
    return x


def numbers_of(element: Any, **signs: str) -> list[Array]:
    """Check attributes of an element and return their values; each argument is name=sign, the required sign as for :func:`number`."""
    return [number(f"{name} of {type(element).__name__}", getattr(element, name), sign) for name, sign in signs.items()]


def constant(label: str, value: Any, sign: str = "") -> float:
    """Return a checked number, which must be the same in all runs."""
    try:
        x = checked_number(label, value, "")
    except (TypeError, ValueError):
        raise ModelError(f"{label} must be a finite number; got {value!r}") from None
    return float(number(label, x, sign))


def bounds(label: str, value: Any) -> list[Array]:
    """Return checked lower and upper limits, each a number or (runs,), or infinite."""
    if not isinstance(value, (tuple, list, np.ndarray)) or len(value) != 2:
        raise ModelError(f"{label} must be two values, (lower, upper); got {value!r}")
    lower, upper = (array(label, x, finite=False) for x in value)
    if max(lower.ndim, upper.ndim) > 1:
        raise ShapeError(f"{label} must be numbers, or (runs,) each; got {lower.shape} and {upper.shape}")
    # the comparison is written so that it also rejects NaN; the interval must contain a finite value
    if not ((lower < np.inf).all() and (upper > -np.inf).all()) or less(upper, lower):
        raise ModelError(f"{label} must be (lower, upper), with lower not greater than upper; got {value!r}")
    return [lower, upper]


def less(x: Array, y: Array) -> bool:
    """Return True if any item of x is less than the corresponding item of y.

    If the shapes do not broadcast, False is returned, and ForceElements.parameters raises the error.
    """
    try:
        return bool((x < y).any())
    except ValueError:
        return False
