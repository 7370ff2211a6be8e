"""Short representations of results in a terminal and in a notebook, in which arrays are represented by their shapes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from typing import Self

MOST = 6  # largest number of values or names that are printed


def brief(value: Any) -> str:
    """Return a short text for a value: the shape of an array, the length of a long sequence."""
    if isinstance(value, np.ndarray):
        if value.ndim == 0:
            return brief(value.item())
        if value.ndim == 1 and value.size <= MOST:
            return f"[{', '.join(map(brief, value.tolist()))}]"
        return f"{value.shape}"
    if isinstance(value, (float, complex, np.floating)):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        numbers = all(isinstance(x, float) for x in value.values())
        shown = (f"{key}: {brief(x)}" if numbers else str(key) for key, x in value.items())
        return f"{{{_listed(shown, len(value))}}}"
    if isinstance(value, (tuple, list)):
        return f"({_listed(map(brief, value), len(value))}{',' * (len(value) == 1)})"
    return repr(value)


def _listed(parts: Iterable[str], count: int) -> str:
    shown = [part for part, _ in zip(parts, range(MOST), strict=False)]
    return ", ".join(shown) + (f", and {count - MOST} more" if count > MOST else "")


def listed(names: Iterable[str], most: int = 8) -> str:
    """Return at most `most` names, separated by commas."""
    names = list(names)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


class Brief:
    """Dataclass of arrays that prints their names and shapes."""

    @classmethod
    def _made(cls, **fields: Any) -> Self:
        """Return an object with these fields without calling the constructor, which for a frozen dataclass takes as long as the dynamics of an arm."""
        made = object.__new__(cls)
        object.__setattr__(made, "__dict__", fields)
        return made

    def _shown(self) -> Iterator[tuple[str, str]]:
        for field in fields(self):  # type: ignore[arg-type]
            if not field.name.startswith("_"):
                yield field.name, brief(getattr(self, field.name))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={text}' for name, text in self._shown())})"

    def _repr_html_(self) -> str:
        return table(self._shown(), type(self).__name__)


def largest(vectors: Any) -> str:
    """Return the largest norm of vectors (..., k) as text."""
    sizes = np.linalg.norm(vectors, axis=-1)
    return f"{np.max(sizes, initial=0.0, where=np.isfinite(sizes)):.4g}"


def table(rows: Iterable[Sequence[object]], caption: str = "", head: Sequence[str] = ()) -> str:
    """Return an HTML table of rows of texts and numbers, whose first column is the header."""
    from html import escape  # imported here, to keep `import sarrus` fast

    lines = [f"<caption>{escape(caption)}</caption>"] if caption else []
    if head:
        lines.append(f"<thead><tr>{''.join(f'<th>{escape(text)}</th>' for text in head)}</tr></thead>")
    lines.append("<tbody>")
    for first, *entries in rows:
        cells = "".join(f'<td style="text-align:left">{escape(str(text))}</td>' for text in entries)
        lines.append(f'<tr><th style="text-align:left">{escape(str(first))}</th>{cells}</tr>')
    return f"<table>{''.join(lines)}</tbody></table>"
