"""Advice on lowering a module's memory, on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from hloopt.diagnostics import counted
from hloopt.ir.attributes.formats import braces
from hloopt.memory.advice.model import (
    Advice,
    Donation,
    Effect,
    Offload,
    Rematerialization,
    Sharding,
    Suggested,
)
from hloopt.memory.limit import Fit
from hloopt.reports.console.footnotes import print_footnote
from hloopt.reports.console.units import (
    human_bytes,
    human_change,
    human_count,
    human_seconds,
    origin,
    page_width,
)
from hloopt.reports.memory.groups import without_layout, without_numbers
from hloopt.reports.memory.model import exhausted

if TYPE_CHECKING:
    from rich.console import Console

_ALIKE = TypeVar("_ALIKE", Rematerialization, Offload, Sharding)


def render_fit(fit: Fit, console: Console) -> None:
    """Print whether a module fits."""
    from rich.text import Text

    width = page_width(console)
    if not fit.fits:
        console.print(Text(exhausted(fit), style="bold red"), width=width)
        return
    text = f": {human_bytes(fit.needed)} of {human_bytes(fit.limit.size)} ({fit.limit.source})"
    if fit.limit.space:
        text = f" into {fit.space_name}{text}"
    else:
        free = human_bytes(fit.limit.size - fit.needed)
        text += f", {free} are left for code, runtime and driver"
    console.print(Text.assemble(("fits", "bold green"), text), width=width)


def render_advice(advice: Advice, console: Console, top: int) -> None:
    """Print each kind of help with its effect and its `top` largest items."""
    from rich.text import Text

    width = page_width(console)
    console.print(Text("What would help", style="bold"))
    page = _Page(console, width, top)
    _donations(advice, page)
    _rematerializations(advice, page)
    _offloads(advice, page)
    _shardings(advice, page)
    notes = (
        "each effect is of that help alone: they do not add up",
        "no target: no times; --target NAME gives them (hloopt targets)"
        if advice.target is None
        else f"times are the least ones on {advice.target}",
    )
    for note in notes:
        print_footnote(console, note, width=width)


@dataclass(frozen=True, slots=True)
class _Page:
    console: Console
    width: int
    top: int

    def line(self, title: str, text: str) -> None:
        from rich.text import Text

        self.console.print()
        self.console.print(Text.assemble((title, "bold cyan"), f": {text}"), width=self.width)

    def more(self, text: str) -> None:
        from rich.text import Text

        self.console.print(Text(text, style="dim"), width=self.width)

    def table(self, heads: Sequence[str], rows: list[tuple[str, ...]]) -> None:
        """Rows of figures, and at the end a shape and where it is from."""
        from hloopt.reports.console.table import ReportTable

        table = ReportTable()
        for name in heads:
            table.add_column(name, justify="right")
        table.add_column("shape")
        table.add_column("from", cut=origin)
        shown = rows[: self.top]
        for row in shown:
            table.add_row(*row)
        self.console.print(table, width=self.width)
        if len(rows) > len(shown):
            self.more(f"and {counted(len(rows) - len(shown), 'more line')}")


def _change(effect: Effect) -> str:
    share = f" ({human_change(effect.before, effect.after)})" if effect.before else ""
    return f"{human_bytes(effect.before)} → {human_bytes(effect.after)}{share}"


# -- kinds of help --------------------------------------------------------------------------------


def _donations(advice: Advice, page: _Page) -> None:
    if not advice.donations:
        page.line("donate", "no argument that is not donated can take an output")
        return
    page.line(
        "donate",
        f"{counted(len(advice.donations), 'argument')} to outputs: needs "
        f"{_change(advice.donated_need)}, peak {_change(advice.donated_peak)}; "
        "buffers were assigned again",
    )
    page.table(
        ("size", "saves", "argument", "output"), [_donation_row(d) for d in advice.donations]
    )


def _donation_row(donation: Donation) -> tuple[str, ...]:
    number, part = donation.argument
    index = braces(map(str, part)) if part else ""
    return (
        human_bytes(donation.size),
        "?" if donation.saved is None else human_bytes(donation.saved),
        f"{number}{index}",
        braces(map(str, donation.output)),
        without_layout(donation.shape),
        donation.name,
    )


def _rematerializations(advice: Advice, page: _Page) -> None:
    found = advice.rematerializations
    if found:
        later = sum(r.is_later for r in found)
        which = f", {later:,} of them later only" if later else ""
        time = _sum_of_seconds(r.seconds for r in found)
        at_least = f", at least {time}" if advice.target else ""
        page.line(
            "compute again",
            f"{counted(len(found), 'time')}{which}: peak {_change(advice.rematerialized_peak)}, "
            f"{human_count(sum(r.flops for r in found))} flops more{at_least}; "
            "counted again from lifetimes, packing may need more",
        )
        page.table(
            ("size", "flops", *(("time",) if advice.target else ()), "idle"),
            [
                (
                    human_bytes(group.size),
                    human_count(sum(r.flops for r in group.items)),
                    *_times(advice, _sum_of_seconds(r.seconds for r in group.items)),
                    _span(group.items[0].idle),
                    group.shape,
                    group.origin,
                )
                for group in _grouped(found)
            ],
        )
    else:
        page.line("compute again", "nothing that waits at the peak can be had again")
    for obstacle in advice.obstacles:
        page.more(
            f"not {counted(obstacle.count, 'buffer')} with {human_bytes(obstacle.size)} that wait "
            f"at the peak: {obstacle.reason}"
        )


def _span(idle: tuple[int, int]) -> str:
    return f"{idle[0]}-{idle[1]}" if idle[0] >= 0 else f"-{idle[1]}"


def _offloads(advice: Advice, page: _Page) -> None:
    found = advice.offloads
    if not found:
        page.line("offload", "nothing waits at the peak")
        return
    known = _sum_of_seconds(o.transfer_seconds for o in found)
    time = "" if known == "?" else f" in {known} at one direction's rate"
    page.line(
        "offload",
        f"{counted(len(found), 'buffer')} to host memory: peak {_change(advice.offloaded_peak)}, "
        f"{human_bytes(sum(o.moved for o in found))} over the link{time}; "
        "counted again from lifetimes, packing may need more",
    )
    page.table(
        ("size", "moved", *(("transfer", "idle for") if advice.target else ())),
        [
            (
                human_bytes(group.size),
                human_bytes(sum(o.moved for o in group.items)),
                *_times(
                    advice,
                    _sum_of_seconds(o.transfer_seconds for o in group.items),
                    human_seconds(min(o.idle_seconds or 0.0 for o in group.items)),
                ),
                group.shape,
                group.origin,
            )
            for group in _grouped(found)
        ],
    )
    slow = [o for o in found if (o.transfer_seconds or 0.0) > (o.idle_seconds or 0.0)]
    if slow:
        page.more(
            f"{counted(len(slow), 'transfer')} may take longer than the least time of what runs "
            "meanwhile"
        )


def _times(advice: Advice, *cells: str) -> tuple[str, ...]:
    """Cells that tell times, where there are any."""
    return cells if advice.target else ()


def _sum_of_seconds(times: Iterable[float | None]) -> str:
    known = [seconds for seconds in times if seconds is not None]
    return human_seconds(sum(known)) if known else "?"


def _shardings(advice: Advice, page: _Page) -> None:
    found = advice.shardings
    if not found:
        page.line("shard", "nothing large at the peak is known to be the same on all devices")
        return
    devices = found[0].devices
    page.line(
        "shard",
        f"{counted(len(found), 'buffer')} at the peak hold the same on all "
        f"{counted(devices, 'device')}: at "
        f"most {human_bytes(advice.sharded_bound)} less if each keeps a part; gathering takes time "
        "and memory",
    )
    page.table(
        ("size", "at most"),
        [
            (
                human_bytes(group.size),
                human_bytes(sum(s.saved for s in group.items)),
                group.shape,
                group.origin,
            )
            for group in _grouped(found)
        ],
    )


# -- alike buffers --------------------------------------------------------------------------------


@dataclass(slots=True)
class _Group(Generic[_ALIKE]):
    shape: str
    origin: str
    size: int
    items: list[_ALIKE]


def _grouped(found: Sequence[_ALIKE]) -> list[_Group[_ALIKE]]:
    """Items whose buffers have one shape, and origins that differ in numbers only."""
    groups: dict[tuple[str, str], list[_ALIKE]] = {}
    for item in found:
        key = without_layout(item.buffer.shape), without_numbers(_origin(item.buffer))
        groups.setdefault(key, []).append(item)
    result = []
    for (shape, alike), items in groups.items():
        origins = {_origin(item.buffer) for item in items}
        result.append(
            _Group(
                f"{len(items):,} x {shape}" if len(items) > 1 else shape,
                origins.pop() if len(origins) == 1 else alike,
                sum(item.buffer.size for item in items),
                items,
            )
        )
    return sorted(result, key=lambda group: -group.size)


def _origin(buffer: Suggested) -> str:
    return buffer.op_name or f"%{buffer.name}"
