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
    color_option,
    format_option,
    parse_size,
    scope_depth_option,
    top_option,
)
from hloopt.commands.shared.each_file import FileReport, many_files_options, report_files
from hloopt.commands.shared.pictures import check_pictures, write_pictures
from hloopt.commands.shared.watching import appearing, check_watch, input_sizes, watch_option

if TYPE_CHECKING:
    from rich.console import Console

    from hloopt.memory.backends import Backend
    from hloopt.reports.memory.model import MemoryFindings


def _parse_limits(
    ctx: click.Context, option: click.Parameter, values: tuple[str, ...]
) -> dict[str, int]:
    """The bytes of each `80GiB`, of main memory under an empty name, or `VMEM=64MiB`."""
    limits = {}
    for value in values:
        name, _, amount = value.rpartition("=")
        size = parse_size(ctx, option, amount)
        assert size is not None  # None is for an option that is not given
        limits[name] = size
    return limits


@click.command(cls=HloCommand)
@click.argument("files", nargs=-1, required=True, metavar="FILE…", shell_complete=completion.files)
@click.option(
    "--by",
    type=click.Choice(["buffer", "scope", "source"]),
    default="buffer",
    show_default=True,
    help="what a row of live buffers is: alike buffers, the first parts of op_name, a source line",
)
@scope_depth_option(3)
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
    "limits",
    callback=_parse_limits,
    multiple=True,
    metavar="80GiB",
    help="the memory there is, or that of a memory space: VMEM=64MiB; exit 1 if a module needs "
    "more, 2 if there is no verdict",
)
@click.option(
    "--space",
    metavar="NAME",
    help="look at one memory space, VMEM, host, … or S(n), in place of main memory",
    shell_complete=completion.memory_spaces,
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
    type=click.Choice(["auto", "cpu", "gpu", "tpu"]),
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
    return 0 if all(fit.fits for fit in found.fits) else EXIT_FOUND


def _analyze(path: str, options: dict[str, Any]) -> MemoryFindings:
    from hloopt.cost_models import CostModelChoice
    from hloopt.files import load
    from hloopt.memory.backends import backend_of
    from hloopt.memory.limit import MemoryLimit
    from hloopt.reports.memory.model import MemoryFindings
    from hloopt.targets import load_target

    name = options["target_name"]
    target = None if name is None else load_target(name)
    module = load(path)
    backend = _backend(options) or backend_of(module)
    limits = {}
    if target is not None:
        limits[0] = MemoryLimit(target.memory_size, target.title)
        for space, space_name in backend.spaces.items():
            if space_name in target.spaces:
                limits[space] = MemoryLimit(target.spaces[space_name], target.title, space)
    for space_name, size in options["limits"].items():
        space = backend.space_named(space_name) if space_name else 0
        limits[space] = MemoryLimit(size, "--limit", space)
    return MemoryFindings.of(
        module,
        target,
        backend=backend,
        space=backend.space_named(options["space"]) if options["space"] else 0,
        limits=limits.values(),
        wants_advice=options["advice"],
        cost_model=None if name is None else CostModelChoice(target=name),
    )


def _backend(options: dict[str, Any]) -> Backend | None:
    """The backend whose rules place the buffers; None if the module tells."""
    from hloopt.memory.backends import BACKENDS, gpu_backend
    from hloopt.memory.gpu.colors import GpuMemoryFlags

    if not options["xla_flags"]:
        return BACKENDS.get(options["backend"])
    if (name := options["backend"]) in ("cpu", "tpu"):
        raise click.UsageError(f"--xla-flag is about XLA:GPU, not --backend {name}")
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
