"""One measurement of the interpreter, in a process of its own.

    interpreter.py corpus SHARED
    interpreter.py matmul SIZE
    interpreter.py step FILE

The last line of stdout is the result as JSON; times are in seconds. Everything is warm: what is
timed has run before in the same process.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from inputs import ROOT

_EVERY = 97  # without any endless loop, in which XLA stays until it is killed
_XLA_SECONDS = 10
_MATMUL_RUNS = 7
_STEP_RUNS = 3


def main() -> None:
    """Measure what the command line names."""
    kind, argument = sys.argv[1:]
    print(json.dumps(_KINDS[kind](argument)))


def measure_corpus(shared: str) -> dict[str, Any]:
    """Parse and run a fixed sample of small modules that both can run; XLA also compiles it.

    Nothing at all without jaxlib, or without the corpus.
    """
    sys.path.insert(0, str(ROOT / "tools"))
    from agreement import sweep
    from agreement_lib.judge import Settings
    from corpus import choose_entries

    folder = Path(shared)
    try:
        entries = choose_entries(folder, max_instructions=200, every=_EVERY, pattern="")
        settings = Settings(oracle=(folder / "oracle").resolve(), seeds=1, timeout=_XLA_SECONDS)
        # Each module twice, the first time so that all is warm.
        verdicts = list(sweep([e for e in entries for _ in range(2)], settings, jobs=1))[1::2]
    except (ImportError, OSError):
        return {"modules": [], "not_ours": 0}
    return {
        "modules": [
            {"id": v.id, "devices": v.devices, "ours": v.ours, "xla": v.xla}
            for v in verdicts
            if v.ours and v.xla
        ],
        "not_ours": sum(v.status == "not ours" for v in verdicts),
    }


def measure_matmul(size: str) -> dict[str, Any]:
    """A square f32 dot, and `numpy.matmul` of the same arrays, in turn."""
    import numpy as np

    from hloopt.interpreter.machine import run_module
    from hloopt.text import parse_module

    shape = f"f32[{size},{size}]"
    module = parse_module(
        f"""HloModule dot
ENTRY e {{
  a = {shape} parameter(0)
  b = {shape} parameter(1)
  ROOT d = {shape} dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
"""
    )
    random = np.random.default_rng(0)
    arrays = [random.random((int(size), int(size)), np.float32) for _ in range(2)]
    ours, theirs = _in_turn(
        [lambda: run_module(module, [arrays]), lambda: np.matmul(*arrays)], _MATMUL_RUNS
    )
    return {"ours": ours, "numpy": theirs}


def measure_step(path: str) -> dict[str, Any]:
    """A whole program on all its devices."""
    from hloopt.interpreter.inputs import Inputs
    from hloopt.interpreter.limits import Limits
    from hloopt.interpreter.machine import devices_of, run_module
    from hloopt.ir.devices.device_counts import device_counts
    from hloopt.text import parse_module

    module = parse_module(Path(path).read_text(encoding="utf-8"))
    devices = devices_of(*device_counts(module))
    arguments = [Inputs().arguments(module.entry, device, 0) for device in devices]
    limits = Limits()
    run_module(module, arguments, devices=devices, limits=limits)
    (seconds,) = _in_turn([lambda: run_module(module, arguments, devices=devices)], _STEP_RUNS)
    return {"devices": len(devices), "steps": limits.done, "seconds": seconds}


def _in_turn(actions: Sequence[Callable[[], object]], runs: int) -> list[float]:
    """The median time of each; a first round is not timed."""
    times: list[list[float]] = [[] for _ in actions]
    for number in range(runs + 1):
        for action, own in zip(actions, times, strict=True):
            started = time.perf_counter()
            action()
            if number:
                own.append(time.perf_counter() - started)
    return list(map(median, times))


_KINDS: dict[str, Callable[[str], dict[str, Any]]] = {
    "corpus": measure_corpus,
    "matmul": measure_matmul,
    "step": measure_step,
}

if __name__ == "__main__":
    main()
