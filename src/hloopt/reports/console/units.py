"""Numbers and names as people read them, cut to so many columns of a terminal.

Columns are not characters: a CJK character takes two, a combining mark none. What is not printable
(control characters, line ends, marks of direction) is shown escaped: names and metadata of a module
may hold anything.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from hloopt.diagnostics import printable

if TYPE_CHECKING:
    from rich.console import Console

_STEPS = ("", " k", " M", " G", " T", " P", " E")


def human_count(number: float) -> str:
    """`832`, `1.5 k`, `772.6 T`: three digits or four and a power of 1000."""
    amount = float(number)
    for step in _STEPS:
        if abs(amount) < 999.95 or step == _STEPS[-1]:
            break
        amount /= 1000
    return f"{amount:.0f}" if not step and amount == round(amount) else f"{amount:.1f}{step}"


def human_rate(amount: float, unit: str) -> str:
    """`3.4 TB/s`, `25.0 GHz`: an amount of a unit."""
    text = human_count(amount)
    return f"{text}{unit}" if " " in text else f"{text} {unit}"


def human_bytes(size: int, *, signed: bool = False) -> str:
    """A size as people read it: `832 B`, `1.5 KiB`, `79.2 GiB`; with its sign if `signed`."""
    sign = "-" if size < 0 else "+" if signed and size > 0 else ""
    amount = float(abs(size))
    if amount < 1024:
        return f"{sign}{abs(size)} B"
    for unit in ("KiB", "MiB", "GiB"):
        amount /= 1024
        if amount < 1023.95:  # 1024.0 after rounding reads better in the next unit
            return f"{sign}{amount:.1f} {unit}"
    return f"{sign}{amount / 1024:,.1f} TiB"


def human_seconds(seconds: float) -> str:
    """`1.52 s`, `12.3 ms`, `4.0 us`, `850 ns`."""
    if seconds <= 0:
        return "0"
    for scale, unit, digits in ((1.0, "s", 2), (1e-3, "ms", 1), (1e-6, "us", 1)):
        if seconds >= 0.9995 * scale:
            return f"{seconds / scale:,.{digits}f} {unit}"
    return f"{seconds * 1e9:.0f} ns" if seconds >= 1e-9 else "< 1 ns"


@dataclass(frozen=True, slots=True)
class CycleUnit:
    """The unit of a model of time: microseconds, or cycles, which are abstract."""

    seconds: float | None
    """Of one unit; None for cycles."""

    @property
    def name(self) -> str:
        return "cycles" if self.seconds is None else "us"

    def to_json(self) -> dict[str, Any]:
        """The unit of times as plain data: `us`, or `cycles`, which stand for no time."""
        return {"unit": self.name, "seconds_per_unit": self.seconds}

    def text(self, cycles: float) -> str:
        """A time as people read it: `12.3 ms`; `5.0 k`, abstract."""
        return human_count(cycles) if self.seconds is None else human_seconds(cycles * self.seconds)

    def label(self, cycles: float) -> str:
        """The same, with the unit also where it is abstract."""
        return f"{self.text(cycles)} {self.name}" if self.seconds is None else self.text(cycles)


def human_ratio(number: float) -> str:
    """`0.083`, `12.5`, `1,234`: three digits."""
    if number >= 1000:
        return f"{number:,.0f}"
    return f"{number:.3g}"


def human_change(old: float, new: float) -> str:
    """`+16.2%`, `-3.0%`, `-<0.1%`; from ten times as much on `x12.0`, `x17.9 M`. `old` is not 0."""
    ratio = new / old
    if 0 < abs(ratio - 1) < 0.0005:
        return "+<0.1%" if ratio > 1 else "-<0.1%"
    return f"x{human_count(ratio)}" if ratio >= 10 else f"{ratio - 1:+.1%}"


def human_share(share: float) -> str:
    """`12.5%`, `< 0.1%`, `0%`."""
    if 0 < share < 0.001:
        return "< 0.1%"
    return f"{share:.1%}" if share else "0%"


def more_text(count: int, room: int) -> str:
    """The note on `count` rows left out of a table: with `--top`, if it fits."""
    text = f"… and {count:,} more"
    hint = f"{text}; --top shows them"
    return hint if len(hint) <= room else text


def some(names: Sequence[str]) -> str:
    """`a, b`, or the first three and how many more there are."""
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"


# -- cut to a width ------------------------------------------------------------------------------

_WIDEST = 120


def page_width(console: Console) -> int:
    """The largest width of a line of a report: beyond 120 columns they are hard to follow."""
    return min(console.width, _WIDEST)


Cut: TypeAlias = Callable[[str, int], str]
"""A function from a text and a width to the part of the text that is shown: `head`, `middle`,
`tail`."""


def columns(text: str) -> int:
    """The number of columns a terminal shows `text` in."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def head(text: str, width: int) -> str:
    """The beginning of what is too long."""
    text = printable(text)
    return text if columns(text) <= width else f"{_first(text, width - 1)}…"


def middle(text: str, width: int) -> str:
    """Both ends of what is too long: of a name, the kind and the number that tells it apart."""
    text = printable(text)
    if columns(text) <= width:
        return text
    back = (width - 1) // 2
    return f"{_first(text, width - 1 - back)}…{_last(text, back)}"


def tail(text: str, width: int) -> str:
    """The end of what is too long: of a path it says most."""
    text = printable(text)
    return text if columns(text) <= width else f"…{_last(text, width - 1)}"


def origin(text: str, width: int) -> str:
    """The name of an instruction, `%name`, or the path of what it is from, as each is cut."""
    return (middle if text.startswith("%") else tail)(text, width)


def _first(text: str, width: int) -> str:
    """The longest beginning that fits, with all marks on its last character."""
    if text.isascii():
        return text[: max(width, 0)]
    end = _longest(text, width, lambda count: text[:count])
    while end < len(text) and _is_mark(text[end]):
        end += 1
    return text[:end]


def _last(text: str, width: int) -> str:
    """The longest end that fits and does not begin with a mark on what is cut off."""
    start = len(text) - max(width, 0)
    if not text.isascii():
        start = len(text) - _longest(text, width, lambda count: text[len(text) - count :])
        while start < len(text) and _is_mark(text[start]):
            start += 1
    return text[start:]


def _longest(text: str, width: int, part: Callable[[int], str]) -> int:
    """The most characters of which `part` fits into `width` columns. O(n log n)."""
    least, most = 0, len(text)
    while least < most:
        count = (least + most + 1) // 2
        if columns(part(count)) <= width:
            least = count
        else:
            most = count - 1
    return least


def _is_mark(character: str) -> bool:
    return unicodedata.category(character).startswith("M")
