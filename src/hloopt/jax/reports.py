"""Reports on programs of JAX, for notebooks and shells of Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from hloopt.diagnostics import HloError
from hloopt.jax.programs import Stage
from hloopt.jax.programs import module as module_of_program

if TYPE_CHECKING:
    from rich.console import Console

_WIDTHS = {"text": 80, "html": 110}
_PRE = (
    '<pre style="white-space:pre; overflow-x:auto; line-height:normal; '
    "font-family:Menlo,'DejaVu Sans Mono',Consolas,'Courier New',monospace\">{code}</pre>"
)


class Report:
    """A report as a command prints it: as text, and as HTML where a notebook shows it."""

    def __init__(self, render: Callable[[Console], None]) -> None:
        self._render = render

    def __str__(self) -> str:
        return self._recorded("text").export_text().rstrip("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """A fragment with its own styles: no scripts, nothing from elsewhere."""
        return self._recorded("html").export_html(inline_styles=True, code_format=_PRE)

    def _recorded(self, kind: Literal["text", "html"]) -> Console:
        from io import StringIO

        from hloopt.reports.console.console import PageConsole

        console = PageConsole(file=StringIO(), record=True, width=_WIDTHS[kind], highlight=False)
        self._render(console)
        return console


def memory(
    program: Any,
    /,
    *args: Any,
    target: str | None = None,
    limit: str | None = None,
    stage: Stage = "after",
    **kwargs: Any,
) -> Report:
    """The report of `hloopt memory` on a program.

    It says whether the program fits into the memory of `target`, or into `limit` as `70GiB`.
    Raises HloError.
    """
    from hloopt.memory.limit import MemoryLimit
    from hloopt.reports.memory.findings_terminal import render_findings
    from hloopt.reports.memory.model import MemoryFindings
    from hloopt.targets import load_target

    device = None if target is None else load_target(target)
    most = None
    if limit is not None:
        most = MemoryLimit(_size(limit), "limit")
    elif device is not None:
        most = MemoryLimit(device.memory_size, device.title)
    module = module_of_program(program, *args, stage=stage, **kwargs)
    found = MemoryFindings.of(module, device, limits=[most] if most else [])
    return Report(lambda console: render_findings(found, console))


def schedule(
    program: Any, /, *args: Any, target: str | None = None, stage: Stage = "after", **kwargs: Any
) -> Report:
    """The report of `hloopt schedule` on a program, in times of `target`. Raises HloError."""
    from hloopt.cost_models import CostModelChoice
    from hloopt.reports.schedule.findings import ScheduleFindings
    from hloopt.reports.schedule.run import ScheduleSettings
    from hloopt.reports.schedule.terminal import render_schedule
    from hloopt.targets import load_target

    settings = ScheduleSettings(
        cost_model=CostModelChoice(target=target),
        memory_limit=None if target is None else load_target(target).memory_size,
    )
    module = module_of_program(program, *args, stage=stage, **kwargs)
    found = ScheduleFindings.of(module, settings)
    return Report(lambda console: render_schedule(found, console))


def diff(before: Any, after: Any, *, target: str | None = None) -> Report:
    """The report of `hloopt diff` on two programs, each as `module` takes it without arguments.

    With `target` schedules are compared in times of it. Raises HloError.
    """
    from hloopt.cost_models import CostModelChoice
    from hloopt.reports.diff.comparison import NAMES
    from hloopt.reports.module_comparison import compare_modules, render_comparison

    cost_model = CostModelChoice(target=target)
    cost_model.resolved()
    modules = module_of_program(before), module_of_program(after)
    found = compare_modules(modules, NAMES, None, cost_model, None)
    return Report(lambda console: render_comparison(found, console))


def _size(text: str) -> int:
    """The bytes that a size with its unit is. Raises HloError."""
    from hloopt.amounts import parse_size

    size = None if text.strip().isdecimal() else parse_size(text)
    if size is None or size < 0:
        raise HloError(f"limit '{text}' is no size", help="a size has a unit: 70GiB, 200MB, 64B")
    return size
