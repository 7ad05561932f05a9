"""`hloopt memory`: how much memory a module needs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    EXIT_FOUND,
    EXIT_USAGE,
    HloCommand,
    check_pictures,
    color_option,
    format_option,
    parse_size,
    top_option,
    write_pictures,
)
from hloopt.commands.shared.each_file import FileReport, many_files_options, report_files
from hloopt.commands.shared.watching import appearing, check_watch, input_sizes, watch_option

if TYPE_CHECKING:
    from rich.console import Console

    from hloopt.memory.backends import Backend
    from hloopt.reports.memory.model import MemoryFindings


@click.command(cls=HloCommand)
@click.argument("files", nargs=-1, required=True, metavar="FILE…", shell_complete=completion.files)
@click.option(
    "--by",
    type=click.Choice(["buffer", "scope", "source"]),
    default="buffer",
    show_default=True,
    help="what a row of live buffers is: alike buffers, the first parts of op_name, a source line",
)
@click.option(
    "--depth", type=click.IntRange(1), default=3, show_default=True, help="parts of a scope"
)
@top_option("rows of each table", 10, least=0)
@click.option(
    "--allocations",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="list the N largest allocations",
)
@click.option(
    "--buffers",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="list the N largest buffers with their lifetimes and places",
)
@click.option(
    "--limit",
    callback=parse_size,
    metavar="80GiB",
    help="the memory there is; exit 1 if a module needs more, 2 if there is no verdict",
)
@click.option(
    "--target",
    "target_name",
    metavar="NAME|FILE.yaml",
    help="a device (`hloopt targets`): its memory is the limit, unless --limit says otherwise; "
    "times of --advice are of it",
    shell_complete=completion.targets,
)
@click.option(
    "--advice/--no-advice",
    default=None,
    help="say what would help; default: if the module does not fit",
)
@click.option(
    "--html",
    metavar="FILE",
    help="also write a page: memory over time, and addresses",
    shell_complete=completion.files,
)
@click.option(
    "--trace",
    metavar="FILE",
    help="also write a trace for Perfetto and Chrome",
    shell_complete=completion.files,
)
@click.option(
    "--backend",
    type=click.Choice(["auto", "cpu", "gpu"]),
    default="auto",
    show_default=True,
    help="whose rules place the buffers; auto: the module tells",
)
@click.option(
    "--xla-flag",
    "xla_flags",
    multiple=True,
    metavar="NAME",
    help="a flag of XLA:GPU that is on: xla_gpu_enable_nccl_user_buffers, …",
)
@watch_option
@many_files_options
@format_option
@color_option
def command(**options: Any) -> int:
    """Arguments, outputs, temporaries, the peak, and what is alive there.

    XLA's own buffer assignment, from the module's schedule: the numbers of its CompiledMemoryStats,
    with every allocation. A module that is not scheduled is put in the order of XLA's default
    memory scheduler. What the numbers rest on is printed below the tables.

    \b
    hloopt memory step.hlo --target h100_sxm
    hloopt memory step.hlo --limit 40GiB --by scope
    hloopt memory step.hlo --html memory.html --trace memory.json
    """
    from hloopt.files import find_inputs

    check_watch(options)
    if not options["watch"]:
        check_pictures(options, find_inputs(options["files"]))

    def look(path: str) -> FileReport:
        found = _analyze(path, options)
        if (options["html"] or options["trace"]) and _write_pictures(found, options):
            return FileReport(None, None, _exit_code(found))
        return FileReport(
            lambda: found.model, lambda console: _render(found, options, console), _exit_code(found)
        )

    report = partial(
        report_files,
        look=look,
        jobs=options["jobs"],
        output_format=options["output_format"],
        color=options["color"],
        has_effects=bool(options["html"] or options["trace"]),
    )
    if not options["watch"]:
        return report(options["files"])
    return max(
        report(new, has_title=True) for new in appearing(lambda: input_sizes(options["files"]))
    )


def _exit_code(found: MemoryFindings) -> int:
    if found.no_verdict:
        return EXIT_USAGE
    return EXIT_FOUND if found.fit and not found.fit.fits else 0


def _analyze(path: str, options: dict[str, Any]) -> MemoryFindings:
    from hloopt.files import load
    from hloopt.memory.limit import MemoryLimit
    from hloopt.reports.memory.model import MemoryFindings
    from hloopt.targets import load_target

    name, size = options["target_name"], options["limit"]
    target = None if name is None else load_target(name)
    limit = None
    if size is not None:
        limit = MemoryLimit(size, "--limit")
    elif target is not None:
        limit = MemoryLimit(target.memory_size, target.title)
    return MemoryFindings.of(
        load(path),
        target,
        backend=_backend(options),
        limit=limit,
        wants_advice=options["advice"],
    )


def _backend(options: dict[str, Any]) -> Backend | None:
    """The backend whose rules place the buffers; None if the module tells."""
    from hloopt.memory.backends import BACKENDS, gpu_backend
    from hloopt.memory.gpu.colors import GpuMemoryFlags

    if not options["xla_flags"]:
        return BACKENDS.get(options["backend"])
    if options["backend"] == "cpu":
        raise click.UsageError("--xla-flag is about XLA:GPU, not --backend cpu")
    return gpu_backend(GpuMemoryFlags.on(options["xla_flags"]))


def _write_pictures(found: MemoryFindings, options: dict[str, Any]) -> bool:
    """Write what was asked for; whether standard output has it, so nothing else may go there."""
    model = found.model
    texts: dict[str, str] = {}
    if options["html"]:
        from hloopt.reports.memory.page import memory_page

        by = "source" if options["by"] == "source" else "scope"
        texts[options["html"]] = memory_page(model, by=by, depth=options["depth"])
    if options["trace"]:
        import json

        from hloopt.reports.memory.trace import memory_trace

        texts[options["trace"]] = json.dumps(memory_trace(model))
    return write_pictures(texts)


def _render(found: MemoryFindings, options: dict[str, Any], console: Console) -> None:
    from hloopt.reports.memory.findings_terminal import render_findings

    shown = {name: options[name] for name in ("by", "depth", "top", "allocations", "buffers")}
    render_findings(found, console, **shown)
