"""Numbers and names as people read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_STEPS = ("", " k", " M", " G", " T", " P", " E")


def human_count(number: float) -> str:
    """`832`, `1.5 k`, `772.6 T`: three digits or four and a power of 1000."""
    amount = float(number)
    for step in _STEPS:
        if abs(amount) < 999.95 or step == _STEPS[-1]:
            break
        amount /= 1000
    return f"{amount:.0f}" if not step and amount == round(amount) else f"{amount:.1f}{step}"


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
    """What the cycles of a model of time stand for."""

    seconds: float | None
    """Of one cycle; None where cycles are an abstract unit."""

    def text(self, cycles: float) -> str:
        """A time as people read it: `12.3 ms`; `5.0 k`, abstract."""
        return human_count(cycles) if self.seconds is None else human_seconds(cycles * self.seconds)

    def label(self, cycles: float) -> str:
        """The same, with the unit also where it is abstract."""
        return f"{self.text(cycles)} cycles" if self.seconds is None else self.text(cycles)


def human_ratio(number: float) -> str:
    """`0.083`, `12.5`, `1,234`: three digits."""
    if number >= 1000:
        return f"{number:,.0f}"
    return f"{number:.3g}"


def human_change(old: float, new: float) -> str:
    """`+16.2%`, `-3.0%`; from ten times as much on `x12.0`, `x17.9 M`. `old` is not 0."""
    ratio = new / old
    return f"x{human_count(ratio)}" if ratio >= 10 else f"{ratio - 1:+.1%}"


def more_text(count: int, room: int) -> str:
    """What to say of `count` rows left out of a table with `--top`: with that, if it fits."""
    text = f"… and {count:,} more"
    hint = f"{text}; --top shows them"
    return hint if len(hint) <= room else text


def head(text: str, width: int) -> str:
    """The beginning of what is too long."""
    return text if len(text) <= width else text[: width - 1] + "…"


def middle(text: str, width: int) -> str:
    """Both ends of what is too long: of a name, the kind and the number that tells it apart."""
    if len(text) <= width:
        return text
    back = (width - 1) // 2
    return f"{text[: width - 1 - back]}…{text[len(text) - back :]}"


def tail(text: str, width: int) -> str:
    """The end of what is too long: of a path it says most."""
    return text if len(text) <= width else "…" + text[len(text) - width + 1 :]


def some(names: Sequence[str]) -> str:
    """`a, b`, or the first three and how many more there are."""
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
