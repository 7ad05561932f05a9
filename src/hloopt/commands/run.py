"""`hloopt run`: what a program computes."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    HloCommand,
    color_option,
    format_option,
    make_console,
    print_json,
    say,
    top_option,
)
from hloopt.commands.shared.running import run_options, run_settings, showing_steps, shrink
from hloopt.diagnostics import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hloopt.interpreter.evaluation import Device
    from hloopt.interpreter.values import Value
    from hloopt.ir.module import Module


@click.command(cls=HloCommand)
@click.argument("file", metavar="FILE", shell_complete=completion.files)
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="seed of the inputs"
)
@run_options
@click.option(
    "--stand-ins", is_flag=True, help="make up unknown custom calls, and constants printed as {...}"
)
@click.option(
    "-o",
    "--output",
    metavar="FILE.npz",
    help="write the outputs: 0, 1, … or 0@DEVICE",
    shell_complete=completion.files,
)
@click.option(
    "--print-values", multiple=True, metavar="NAME", help="show the values of an instruction"
)
@click.option("--trace", is_flag=True, help="show minimum, maximum, mean, NaNs of every value")
@top_option("rows of the table", 20)
@format_option
@color_option
def command(file: str, **options: Any) -> int:
    """Run a module with NumPy, on all the devices it is for.

    Inputs are made up, reproducibly, unless --input gives them. Equal outputs of several devices
    are shown once.

    \b
    hloopt run step.hlo
    hloopt run step.hlo --devices 1x8 --print-values all-reduce.7
    hloopt run step.hlo --input weights.npz --input tokens=tokens.npy -o outputs.npz
    """
    from hloopt.files import is_stdout, load, write_bytes
    from hloopt.reports.execution.trace import Trace
    from hloopt.reports.execution.values import JsonRoom, results_to_json

    if options["output"] is not None and is_stdout(options["output"]):
        raise click.UsageError("-o needs a file: stdout is for the report")
    is_json = options["output_format"] == "json"
    watches = options["trace"] or options["print_values"]
    if watches and options["engine"] == "xla":
        raise click.UsageError("XLA shows results only: no --trace or --print-values with it")
    module = load(file)
    if options["shrink"]:
        (module,) = shrink([module])
    names = _instruction_names(module, options["print_values"])
    started = time.perf_counter()
    with nullcontext() if watches else showing_steps("running") as on_steps:
        settings = run_settings([module], options, on_steps)
        placement = settings.place(module)
        devices = placement.devices
        show = None if is_json else click.echo
        room = JsonRoom(options["max_memory"])
        if is_json:
            leaves = [leaf for leaf in module.entry.root.shape.leaves() if leaf.is_array]
            room.take(len(devices) * sum(leaf.element_count() for leaf in leaves))
        trace = Trace(
            names, everything=options["trace"], device_count=len(devices), show=show, room=room
        )
        results = settings.run_made_up(placement, options["seed"], trace if watches else None)
    seconds = time.perf_counter() - started
    for name in sorted(names - trace.seen):
        say(f"%{name} did not run by itself: no values to print")
    if options["output"]:
        from hloopt.interpreter.array_files import npz_bytes

        write_bytes(options["output"], npz_bytes(results, devices))
    if is_json:
        shown = {"values": trace.records} if watches else {}
        print_json({"file": file, "devices": results_to_json(results, devices), **shown})
    else:
        _render(file, results, devices, seconds, options)
    return 0


def _instruction_names(module: Module, given: Sequence[str]) -> frozenset[str]:
    """The instructions to show, without `%`. Raises UsageError for a name that is none."""
    known = {instruction.name for instruction in module.instructions()} if given else set()
    names = [name.removeprefix("%") for name in given]
    for name in names:
        if name not in known:
            from hloopt.diagnostics import did_you_mean

            hint = did_you_mean(name, known)
            raise click.BadParameter(
                f"no instruction '{name}'" + (f"; {hint}" if hint else ""),
                param_hint="--print-values",
            )
    return frozenset(names)


def _render(
    file: str,
    results: Sequence[Value],
    devices: Sequence[Device],
    seconds: float,
    options: dict[str, Any],
) -> None:
    from rich.text import Text

    from hloopt.reports.execution.values import render_outputs

    console = make_console(options["color"])
    render_outputs(results, console, top=options["top"])
    where = counted(len(devices), "device")
    line = f"{file}: {where}, seed {options['seed']}, {seconds:.2f} s"
    if options["output"]:
        line += f", wrote {options['output']}"
    console.print(Text(line, style="dim"), soft_wrap=True)
