"""One run of the collective pipeliner on a recorded module, in a process of its own.

    pipelining.py forward|backward FILE SMALL_FILE

The last line of stdout is the result as JSON; times are in seconds. What is timed is the pass, on a
freshly loaded module, and the same pass of XLA:GPU: what it says that it took, compiling the file.
"""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from inputs import shared_folder
from worker import read_text, timed

if TYPE_CHECKING:
    from hloopt.ir.module import Module


class _Direction(NamedTuple):
    moves: str
    """The opcode of what is moved."""
    flag: str
    """The flag of XLA:GPU that makes it move them."""


_DIRECTIONS = {
    "forward": _Direction("all-reduce", "--xla_gpu_enable_pipelined_all_reduce=true"),
    "backward": _Direction("all-gather", "--xla_gpu_enable_pipelined_all_gather=true"),
}


def main() -> None:
    """Measure what the command line names."""
    from hloopt.text import parse_module

    direction, path, small = sys.argv[1:]
    run = partial(_pipeline, direction)
    run(parse_module(read_text(small)))
    text = read_text(path)
    module = parse_module(text)
    before = module.instruction_count()
    seconds = timed(partial(run, module), time.process_time)
    after = module.instruction_count()
    if after == before:
        raise SystemExit(f"nothing in {path} is pipelined {direction}")
    xla = _xla_seconds(text, direction)
    print(json.dumps({"seconds": seconds, "before": before, "after": after, "xla": xla}))


def _pipeline(direction: str, module: Module) -> None:
    from hloopt.pass_framework.base import PassContext
    from hloopt.pass_framework.registry import create_pass

    name = "collective-pipeliner"
    options = {
        "pipelining_direction": direction,
        "should_process": (_DIRECTIONS[direction].moves,),
        "unique_channel_id": True,  # as XLA's
    }
    create_pass(name, options).run(module, PassContext(name, wants_remarks=False))


def _xla_seconds(text: str, direction: str) -> float:
    """Time of XLA:GPU's own pass; 0 where it is not installed."""
    sys.path.insert(0, str(shared_folder() / "oracle"))
    name = f"collective-pipeliner-{direction}"
    flags = [_DIRECTIONS[direction].flag, "--xla_gpu_enable_pipelined_reduce_scatter=false"]
    try:
        result = import_module("xla_gpu").compile(
            text, target="h100_sxm", only=[name], flags=flags, lhs=False,
            passes="^none$",  # writing texts would count as time of the pass
        )  # fmt: skip
    except (ImportError, RuntimeError):  # among them PackagesMissing
        return 0.0
    return float(sum(ms for _, step, ms in result.pass_times if step == name)) / 1e3


if __name__ == "__main__":
    main()
