"""Pages on single modules of dumps, beside that of the whole folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hloopt.diagnostics import HloError
from hloopt.dumps.summary import ModuleRow
from hloopt.files import file_name, load, write_whole

if TYPE_CHECKING:
    from hloopt.ir.module import Module


def write_module_pages(
    rows: Sequence[ModuleRow], count: int, folder: str
) -> dict[int, dict[str, str]]:
    """Write pages of memory and schedule of the first `count` modules that were optimized; their
    paths by the number of the row and by subject.

    A module of which there can be no page is passed over. Raises HloError if a page cannot
    be written. Near-linear in the modules.
    """
    found: dict[int, dict[str, str]] = {}
    for number, row in enumerate(rows):
        one = row.one
        if len(found) == count:
            break
        if row.after is None or one.last is None:
            continue
        try:
            module = load(one.hlo(one.last).path)
            texts = {"memory": _memory(module), "schedule": _schedule(module)}
        except HloError:
            continue
        for what, text in texts.items():
            path = os.path.join(folder, file_name(f"{number}.{one.name}.{what}", ".html"))
            write_whole(path, text)
            found.setdefault(number, {})[what] = path
    return found


def _memory(module: Module) -> str:
    from hloopt.reports.memory.model import MemoryFindings
    from hloopt.reports.memory.page import memory_page

    return memory_page(MemoryFindings.of(module, None).model, by="scope", depth=3)


def _schedule(module: Module) -> str:
    from hloopt.reports.schedule.findings import ScheduleFindings
    from hloopt.reports.schedule.page import schedule_page
    from hloopt.reports.schedule.run import ScheduleSettings
    from hloopt.reports.schedule.timeline import Timeline

    findings = ScheduleFindings.of(module, ScheduleSettings())
    return schedule_page(findings, Timeline.of(findings))
