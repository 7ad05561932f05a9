"""Parts that the commands that run programs share: options, devices, progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING, Any

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import Function, parse_count, parse_size, parse_time, say

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from hloopt.equivalence import Engine, RunSettings
    from hloopt.ir.module import Module
    from hloopt.preserves import Preserves


def _parse_counts(
    ctx: click.Context, option: click.Parameter, value: str | None
) -> tuple[int, int] | None:
    if value is None:
        return None
    both = value.lower().split("x")
    if len(both) != 2 or not all(n.isascii() and n.isdecimal() and len(n) < 6 for n in both):
        raise click.BadParameter(f"'{value}' is no RxP: replicas x partitions, for example 1x8")
    counts = int(both[0]), int(both[1])
    if 0 in counts:
        raise click.BadParameter(f"'{value}' has no device")
    return counts


def devices_option(command: Function) -> Function:
    """`--devices RxP`, as `counts`: replicas and partitions, or None."""
    return click.option(
        "--devices",
        "counts",
        callback=_parse_counts,
        metavar="RxP",
        help="replicas x partitions; default: what the module is for",
    )(command)


def fill_option(command: Function) -> Function:
    """`--fill KIND`."""
    return click.option(
        "--fill",
        type=click.Choice(["random", "iota", "zeros", "nan-trap"]),
        default="random",
        show_default=True,
        help="the values of inputs; nan-trap: random ones, a few of them NaN",
    )(command)


def limit_options(command: Function) -> Function:
    """`--max-steps`, `--max-memory`, `--time-limit`: how far programs are run."""
    for option in reversed(
        (
            click.option(
                "--max-steps",
                callback=parse_count,
                metavar="AMOUNT",
                default="100M",
                show_default=True,
                help="stop a run after so many instructions, or as much work, over all devices",
            ),
            click.option(
                "--max-memory",
                callback=parse_size,
                metavar="SIZE",
                default="8GiB",
                show_default=True,
                help="stop where values take more, over all devices",
            ),
            click.option(
                "--time-limit",
                callback=parse_time,
                metavar="TIME",
                help="stop after so long, all runs together: 30s, 2min",
            ),
        )
    ):
        command = option(command)
    return command


def run_options(command: Function) -> Function:
    """The options that say on what a program runs, and how far; for `run_settings`."""
    for option in reversed(
        (
            devices_option,
            fill_option,
            click.option(
                "--input",
                "input_files",
                multiple=True,
                metavar="FILE.npz|KEY=FILE.npy",
                help="values for parameters; keys are PARAMETER[:LEAF][@DEVICE]",
                shell_complete=completion.files,
            ),
            limit_options,
            click.option(
                "--shrink", is_flag=True, help="make dimensions smaller where that is safe"
            ),
            click.option(
                "--engine",
                type=click.Choice(["numpy", "xla"]),
                default="numpy",
                show_default=True,
                help="xla: the real XLA:CPU, with pip install 'hloopt[xla]'",
            ),
        )
    ):
        command = option(command)
    return command


def tolerance_options(command: Function) -> Function:
    """`--rtol`, `--atol`: how far floats may be off."""
    rtol = click.option(
        "--rtol",
        type=click.FloatRange(0),
        help="floats may be off by this part of what A gives; default: by type and rounding",
    )
    atol = click.option(
        "--atol", type=click.FloatRange(0), help="and by this, in the unit of the values"
    )
    return rtol(atol(command))


def preserves_option(default: Preserves = "rounding") -> Callable[[Function], Function]:
    """`--preserves WHAT`: what two programs have to have in common."""
    return click.option(
        "--preserves",
        type=click.Choice(["bits", "rounding", "finite", "precision"]),
        default=default,
        show_default=True,
        help="bits: floats as they are; finite: what differs on special values alone is no "
        "difference; precision: nor is where floats are rounded to the narrowest type on their way",
    )


def seeds_of(ctx: click.Context, options: dict[str, Any]) -> int:
    """On how many inputs to run: on one where inputs are given and nobody asks for more."""
    from click.core import ParameterSource

    is_default = ctx.get_parameter_source("seeds") is ParameterSource.DEFAULT
    count: int = options["seeds"]
    return 1 if options["input_files"] and is_default else count


def run_settings(
    modules: Sequence[Module], options: dict[str, Any], on_steps: Callable[[int], None] | None
) -> RunSettings:
    """The settings that `run_options` ask for. Raises HloError for input files.

    Keys of input files name parameters of the first of the `modules`.
    """
    from hloopt.equivalence import RunSettings, Tolerance
    from hloopt.interpreter.array_files import read_arrays
    from hloopt.interpreter.inputs import Inputs
    from hloopt.interpreter.limits import Deadline
    from hloopt.ir.devices.device_counts import device_counts

    counts = options["counts"]
    most = prod(counts or max(map(device_counts, modules), key=prod))
    given = read_arrays(options["input_files"], modules[0].entry, most)
    tolerances = options.get("rtol"), options.get("atol")
    return RunSettings(
        seeds=options.get("seeds", 1),
        inputs=Inputs(options["fill"], given),
        counts=counts,
        tolerance=None
        if tolerances == (None, None)
        else Tolerance(*(t or 0.0 for t in tolerances)),
        steps=options["max_steps"],
        memory=options["max_memory"],
        deadline=options["time_limit"] and Deadline(options["time_limit"]),
        on_steps=on_steps,
        engine=_engine(options["engine"], options["time_limit"]),
        stand_ins=options.get("stand_ins", True),
    )


def _engine(name: str, time_limit: float | None) -> Engine | None:
    if name == "numpy":
        return None
    from functools import partial

    from hloopt.xla.engine import run_with_xla

    return run_with_xla if time_limit is None else partial(run_with_xla, seconds=time_limit)


def shrink(modules: Sequence[Module]) -> list[Module]:
    """Smaller copies by one plan, which is told on stderr. Raises RunError where there is none."""
    from hloopt.shrink import plan_shrink

    plan = plan_shrink(modules)
    for line in plan.describe():
        say(f"shrunk: {line}")
    return [plan.apply(module) for module in modules]


@contextmanager
def showing_steps(what: str) -> Iterator[Callable[[int], None] | None]:
    """A line on stderr that tells how far a run is, on a terminal: give it to `run_settings`."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{what} …") as status:
        yield lambda steps: status.update(f"{what}: {steps:,} steps")


_SHOWN_AFTER = 1.0
"""Seconds of work before a bar appears."""


@contextmanager
def showing_parts() -> Iterator[Callable[[str, float], None] | None]:
    """A bar on stderr, on a terminal, for work that takes more than a second.

    Give it what the work is, and which part of it is done, from 0 to 1.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from contextlib import ExitStack
    from time import perf_counter

    begin = perf_counter()
    shown: list[tuple[Progress, TaskID]] = []
    with ExitStack() as stack:

        def show(what: str, part: float) -> None:
            if not shown:
                if perf_counter() - begin < _SHOWN_AFTER:
                    return
                from rich.console import Console
                from rich.progress import Progress

                bar = Progress(console=Console(stderr=True), transient=True)
                stack.enter_context(bar)
                shown.append((bar, bar.add_task("", total=1.0)))
            bar, task = shown[0]
            bar.update(task, description=what, completed=part)

        yield show
