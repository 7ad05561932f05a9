"""The collective pipeliner on one recorded module, in a process of its own.

    pipelining.py forward|backward FILE SMALL_FILE

The last line of stdout is the result as JSON; times are in seconds. What is timed is reading and
the pass, ours and XLA's in turn: a pass of XLA takes what XLA:GPU says that it took.
"""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from inputs import shared_folder
from worker import jaxlib_hlo, read_text, timed

if TYPE_CHECKING:
    from collections.abc import Callable

    from hloopt.ir.module import Module

_ROUNDS = 3
_RUNS = 3  # per round, each of the four


class _Direction(NamedTuple):
    moves: str
    """The opcode of what is moved."""
    flag: str
    """What makes XLA:GPU do so."""


_DIRECTIONS = {
    "forward": _Direction("all-reduce", "--xla_gpu_enable_pipelined_all_reduce=true"),
    "backward": _Direction("all-gather", "--xla_gpu_enable_pipelined_all_gather=true"),
}


def main() -> None:
    """Measure what the command line names."""
    direction, path, small = sys.argv[1:]
    text = read_text(path)
    readers, run = _readers(), partial(_pipeline, direction)
    for read in readers.values():
        read(read_text(small))
    instructions = _instructions(text, run)
    times: dict[str, list[float]] = {"pass": [], "xla_pass": [], "parse": [], "xla_parse": []}
    for _ in range(_ROUNDS):
        times["xla_pass"] += _xla_seconds(text, direction)
        for _ in range(_RUNS):
            for name, read in readers.items():
                times[name].append(timed(partial(read, text), time.process_time))
            module = readers["parse"](text)
            times["pass"].append(timed(partial(run, module), time.process_time))
    print(json.dumps({"instructions": instructions, **times}))


def _readers() -> dict[str, Callable[[str], Any]]:
    """Our reader, and XLA's where it is installed."""
    from hloopt.text import parse_module

    hlo = jaxlib_hlo()
    return {"parse": parse_module, **({"xla_parse": hlo.hlo_module_from_text} if hlo else {})}


def _instructions(text: str, run: Callable[[Module], bool]) -> tuple[int, int]:
    """How many there are before and after. Raises SystemExit where nothing is pipelined."""
    from hloopt.text import parse_module

    module = parse_module(text)
    before = module.instruction_count()
    if not run(module):
        raise SystemExit("nothing in this module is pipelined")
    return before, module.instruction_count()


def _pipeline(direction: str, module: Module) -> bool:
    from hloopt.passes.base import PassContext
    from hloopt.passes.registry import create_pass

    name = "collective-pipeliner"
    options = {
        "pipelining_direction": direction,
        "should_process": (_DIRECTIONS[direction].moves,),
        "unique_channel_id": True,  # as XLA's
    }
    return create_pass(name, options).run(module, PassContext(name, wants_remarks=False))


def _xla_seconds(text: str, direction: str) -> list[float]:
    """What XLA:GPU says its pass took, a few times; nothing where it is not installed."""
    sys.path.insert(0, str(shared_folder() / "oracle"))
    name = f"collective-pipeliner-{direction}"
    flags = [_DIRECTIONS[direction].flag, "--xla_gpu_enable_pipelined_reduce_scatter=false"]
    try:
        results = import_module("xla_gpu").compile_many(
            [text] * _RUNS, target="h100_sxm", only=[name], flags=flags, lhs=False, until="memory",
            passes="^none$",  # writing texts would count as time of the passes
        )  # fmt: skip
    except (ImportError, RuntimeError):  # among them PackagesMissing
        return []
    steps = [step for result in results for step in result.pass_times]
    return [milliseconds / 1e3 for _, step, milliseconds in steps if step == name]


if __name__ == "__main__":
    main()
