"""`hloopt optimize`: the decisions that make a step shorter, or make it fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    EXIT_FOUND,
    HloCommand,
    color_option,
    format_option,
    make_console,
    parse_size,
    parse_time,
    print_json,
    say,
)
from hloopt.commands.shared.pictures import check_outputs, write_pictures
from hloopt.commands.shared.running import showing_parts

if TYPE_CHECKING:
    from hloopt.cost_models import CostModelChoice
    from hloopt.ir import Module
    from hloopt.pass_framework.pipeline import Pipeline
    from hloopt.reports.optimization.findings import OptimizationFindings


@click.command(cls=HloCommand)
@click.argument("file", metavar="FILE", shell_complete=completion.files)
@click.option(
    "--target",
    required=True,
    metavar="NAME|FILE.yaml",
    help="the hardware whose times count: `hloopt targets` lists it",
    shell_complete=completion.targets,
)
@click.option(
    "--limit",
    callback=parse_size,
    metavar="80GiB",
    help="the memory that buffers may take on a device; default: what they take in FILE, in whole "
    "pages of 2 MiB",
)
@click.option(
    "--budget",
    callback=parse_time,
    default="30s",
    show_default=True,
    metavar="TIME",
    help="about how long to look: 30s, 2min",
)
@click.option(
    "--iterations",
    type=click.IntRange(0),
    metavar="N",
    help="how long to look instead: the result then is always the same",
)
@click.option("--seed", type=int, default=0, show_default=True, help="the seed of random choices")
@click.option(
    *("-j", "--jobs"),
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="processes; the result of --iterations does not depend on their number",
)
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    help="where to write the module; default: stdout, and the report on stderr",
    shell_complete=completion.files,
)
@click.option(
    "--html",
    metavar="FILE",
    help="also write the report as a page with the timelines before and after",
    shell_complete=completion.files,
)
@format_option
@color_option
def command(file: str, **options: Any) -> int:
    """Decide together how collectives run, what is recomputed or offloaded, and in which order.

    A module that is larger than --limit is made to fit at the least time that this costs. One that
    fits is made shorter: collectives are combined, split, pipelined across the trips of loops, and
    all is ordered anew. It computes what it did, but for rounding; it is never longer by the model
    of times, and never needs more memory than it may. docs/overlap.md explains the decisions.

    Exit code 1: the module does not fit.

    \b
    hloopt optimize step.hlo --target h100_sxm -o best.hlo
    hloopt optimize step.hlo --target h100_sxm --limit 80GiB --budget 2min -o best.hlo
    hloopt optimize step.hlo --target b200 --budget 10min -j 8 -o best.hlo --html best.html
    """
    output = options["output"] or "-"
    _check_options(file, output, options)
    from hloopt.cost_models import CostModelChoice
    from hloopt.driver import Settings, optimize
    from hloopt.files import is_stdout, read_module, save
    from hloopt.reports.optimization.findings import OptimizationFindings

    module = read_module(file)
    _check_schedule(module, file, options)
    _check_outputs(output, options["html"])
    pipeline = _pipeline(module, options)
    settings = Settings(wants_remarks=True)
    with showing_parts() as on_progress:
        outcome = optimize(lambda: module, pipeline, settings, say, on_progress=on_progress)
    save(module, output)
    choice = CostModelChoice(target=options["target"])
    found = OptimizationFindings.of(outcome, choice, options["limit"], options["seed"])
    if options["html"]:
        _write_page(found, choice, options["html"])
    if options["output_format"] == "json":
        from hloopt.reports.optimization.record import optimization_to_json

        print_json({"file": file, "output": output, **optimization_to_json(found)})
    else:
        from hloopt.reports.optimization.terminal import render_optimization

        is_taken = is_stdout(output) or is_stdout(options["html"] or "")
        render_optimization(found, make_console(options["color"], stderr=is_taken))
    if not is_stdout(output):
        say(f"wrote {output}")
    return EXIT_FOUND if found.fits is False else 0


def _check_options(file: str, output: str, options: dict[str, Any]) -> None:
    """Raise UsageError for outputs that clash, HloError for a target that is none."""
    from hloopt.files import is_stdout
    from hloopt.targets import load_target

    outputs = {"-o": output} | ({"--html": options["html"]} if options["html"] else {})
    check_outputs(outputs, [file])
    if options["output_format"] == "json" and any(map(is_stdout, outputs.values())):
        raise click.UsageError("--format json needs -o PATH: stdout is taken")
    load_target(options["target"])


def _check_schedule(module: Module, file: str, options: dict[str, Any]) -> None:
    """Raise HloError for what needs a schedule, where the module has none."""
    from hloopt.diagnostics import HloError

    for name, why in (
        ("html", "no page: it shows two timelines"),
        ("limit", "no limit: memory is known of a schedule"),
    ):
        if options[name] is not None and not module.is_scheduled:
            raise HloError(
                f"{why}, and {file} has no schedule",
                help=f"leave out --{name}, or give the module as XLA scheduled it",
            )


def _check_outputs(*paths: str | None) -> None:
    """Raise HloError for outputs that cannot be written, before the search."""
    from hloopt.files import check_writable

    for path in paths:
        if path is not None:
            check_writable(path)


def _pipeline(module: Module, options: dict[str, Any]) -> Pipeline:
    """The search for memory for what has to shrink, else the search for overlap."""
    from hloopt.pass_framework.pipeline import PassStep, Pipeline
    from hloopt.pass_framework.registry import create_pass

    name = "memory-search" if _is_too_large(module, options["limit"]) else "overlap-search"
    given = {
        "target": options["target"],
        "memory_limit": options["limit"],
        "budget": f"{options['budget']:f}s",
        "iterations": options["iterations"],
        "seed": options["seed"],
        "jobs": options["jobs"],
    }
    given = {option: value for option, value in given.items() if value is not None}
    return Pipeline("optimize", (PassStep(create_pass(name, given), given),))


def _is_too_large(module: Module, limit: int | None) -> bool:
    from hloopt.reports.optimization.findings import allocated_bytes

    return limit is not None and module.is_scheduled and allocated_bytes(module) > limit


def _write_page(found: OptimizationFindings, choice: CostModelChoice, path: str) -> None:
    from hloopt.reports.optimization.page import optimization_page

    write_pictures({path: optimization_page(found, choice)})
