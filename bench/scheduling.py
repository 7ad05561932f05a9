"""One measurement of the latency-hiding scheduler, in a process of its own.

    scheduling.py module SWEEP    a module that XLA:GPU scheduled, by its costs and memory limit
    scheduling.py wide COUNT      one computation of COUNT instructions, most of them ready at once

The last line of stdout is the result as JSON; times are in seconds. What is timed is the pass:
analysis and scheduling, not reading. Ours and XLA's runs take turns; XLA's time is its own.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from inputs import shared_folder, wide_module
from worker import timed

if TYPE_CHECKING:
    from hloopt.ir.module import Module

_RUNS = 3


def main() -> None:
    """Measure what the command line names."""
    kind, argument = sys.argv[1:]
    print(json.dumps({"module": measure_module, "wide": measure_wide}[kind](argument)))


def measure_module(sweep: str) -> dict[str, Any]:
    """A recorded module in turn with XLA's pass; its times are missing without that compiler."""
    folder = Path(sweep)
    record = json.loads((folder / "base.json").read_text(encoding="utf-8"))
    options = {
        "preset": "xla-gpu",
        "cost_model": "table",
        "cost_table": str(folder / "costs.json.gz"),
        "memory_limit": record["memory_limit"],
    }
    with gzip.open(folder / "before_lhs.hlo.gz", "rt", encoding="utf-8") as file:
        text = file.read()
    ours, xla = [], []
    instructions = 0
    for _ in range(_RUNS):
        module = _parse(text)
        instructions = module.instruction_count()
        ours.append(timed(partial(_schedule, module, options)))
        xla += _xla_seconds(text)
    return {
        "instructions": instructions,
        "ours": median(ours),
        "xla": median(xla) if xla else 0.0,
    }


def measure_wide(count: str) -> dict[str, Any]:
    """A computation whose instructions are all ready at once, but for its collectives."""
    text = wide_module(int(count))
    options = {"preset": "xla-gpu", "memory_limit": 64 * 4 * int(count)}
    times = []
    for _ in range(_RUNS):
        module = _parse(text)
        times.append(timed(partial(_schedule, module, options), time.process_time))
    return {"seconds": min(times)}


def _parse(text: str) -> Module:
    from hloopt.text import parse_module

    return parse_module(text)


def _schedule(module: Module, options: dict[str, Any]) -> None:
    from hloopt.pass_framework.base import PassContext
    from hloopt.pass_framework.registry import create_pass

    name = "latency-hiding-scheduler"
    create_pass(name, options).run(module, PassContext(name))


def _xla_seconds(text: str) -> list[float]:
    """Time of XLA:GPU's own pass, once; nothing where it is not installed."""
    sys.path.insert(0, str(shared_folder() / "oracle"))
    try:
        lhs = import_module("xla_gpu").schedule(text, target="h100_sxm").lhs
    except (ImportError, RuntimeError):  # among them PackagesMissing
        return []
    return [lhs["lhs_seconds"]] if lhs and lhs["lhs_seconds"] else []


if __name__ == "__main__":
    main()
