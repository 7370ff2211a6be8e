"""How answers show themselves in a terminal and a notebook: short, arrays by their shapes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from typing import Self

MOST = 6  # numbers, or names, that are written out


def brief(value: Any) -> str:
    """A value in a few words: an array by its shape, many things by their count."""
    if isinstance(value, np.ndarray):
        if value.ndim == 0:
            return brief(value.item())
        if value.ndim == 1 and value.size <= MOST:
            return f"[{', '.join(map(brief, value.tolist()))}]"
        return f"{value.shape}"
    if isinstance(value, (float, complex, np.floating)):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return f"{{{_listed(map(str, value), len(value))}}}"
    if isinstance(value, (tuple, list)):
        return f"({_listed(map(brief, value), len(value))}{',' * (len(value) == 1)})"
    return repr(value)


def _listed(parts: Iterable[str], count: int) -> str:
    shown = [part for part, _ in zip(parts, range(MOST), strict=False)]
    return ", ".join(shown) + (f", and {count - MOST} more" if count > MOST else "")


def listed(names: Iterable[str], most: int = 8) -> str:
    """Names with commas between them, no more than so many."""
    names = list(names)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


class Brief:
    """A dataclass of arrays, which prints as their names and shapes."""

    @classmethod
    def _made(cls, **fields: Any) -> Self:
        """One with all of these fields; a frozen dataclass sets them one by one, which takes as long as the dynamics of an arm."""
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
    """The size of the longest of vectors (..., k)."""
    sizes = np.linalg.norm(vectors, axis=-1)
    return f"{np.max(sizes, initial=0.0, where=np.isfinite(sizes)):.4g}"


def table(rows: Iterable[Sequence[object]], caption: str = "", head: Sequence[str] = ()) -> str:
    """HTML of rows of texts and numbers; what stands first in a row heads it."""
    from html import escape  # which an import does without

    lines = [f"<caption>{escape(caption)}</caption>"] if caption else []
    if head:
        lines.append(f"<thead><tr>{''.join(f'<th>{escape(text)}</th>' for text in head)}</tr></thead>")
    lines.append("<tbody>")
    for first, *others in rows:
        cells = "".join(f'<td style="text-align:left">{escape(str(text))}</td>' for text in others)
        lines.append(f'<tr><th style="text-align:left">{escape(str(first))}</th>{cells}</tr>')
    return f"<table>{''.join(lines)}</tbody></table>"
