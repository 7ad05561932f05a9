"""Steps decided from before XLA's scheduler on: splitting, pipelining and the order."""

from __future__ import annotations

import time
from pathlib import Path

from hloopt.files import load
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from overlap_lib.compiler import XlaGpu
from overlap_lib.rows import Row, allowed_iterations
from overlap_lib.steps import TARGET, recorded


def reordered(folder: Path, gpu: XlaGpu, iterations: int, seed: int) -> Row:
    """A recorded step, and what overlap-search makes of it. Raises Failed.

    XLA judges both, made to keep the orders. Where it allocates more for ours, or finds it longer,
    ours is XLA's: such a result would be undone.
    """
    module = load(str(folder / "default" / "after_lhs.hlo.gz"))
    default = gpu.forced(module, is_last=True)
    context = PassContext(wants_remarks=False)
    search = {
        "target": TARGET,
        "iterations": allowed_iterations(module, iterations),
        "seed": seed,
    }
    begin = time.process_time()
    is_changed = create_pass("overlap-search", search).run(module, context)
    seconds = time.process_time() - begin
    made = sum(n for what, n in context.statistics.items() if what.startswith("decisions to "))
    found = gpu.forced(module, is_last=True) if is_changed else default
    is_kept = found.is_no_worse(default)
    best = default
    if (folder / "pipelined").is_dir():
        best = min(default, recorded(folder / "pipelined"), key=lambda step: step.total)
    return Row(
        folder.name,
        default,
        best,
        found if is_kept else default,
        made if is_kept else 0,
        context.statistics["decisions tried"],
        seconds,
        is_undone=not is_kept,
    )
