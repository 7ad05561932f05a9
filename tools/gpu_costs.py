"""Costs by the speed-of-light estimator of XLA:GPU's compiler; needs no GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hloopt.diagnostics import HloError
from oracle_script import oracle_script

Costs = dict[str, dict[str, float]]
"""Microseconds under "node" by instruction, and under "latency" by start."""


def ask_costs(text: str, target: str, shared: Path, python: str) -> Costs:
    """The costs of a module whose computations with asynchronous operations get scheduled.

    `target` is the name of one of the device descriptions in `shared`/oracle/targets, `python` an
    interpreter with XLA's GPU plugin (see oracle/XLA_GPU.md). Raises HloError.
    """
    oracle = shared / "oracle"
    xla_gpu = oracle_script(oracle, "xla_gpu")
    verbosity = f"{xla_gpu.VMODULE},{xla_gpu.EXPLAIN}"
    description = str(oracle / "targets" / f"{target}.txtpb")
    try:
        answer: Any = xla_gpu.schedule(text, target=description, python=python, vmodule=verbosity)
    except xla_gpu.PackagesMissing as error:
        raise HloError(f"{python} has no XLA:GPU: {error}") from None
    costs: Costs = answer.costs
    if not costs["node"]:
        raise HloError(f"XLA:GPU does not schedule the module: {answer.error}")
    return costs
