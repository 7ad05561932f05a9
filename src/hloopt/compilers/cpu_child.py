"""XLA:CPU of jaxlib in a process of its own, with the jobs and answers of `plugin_child`."""

# jaxlib is typed in part only:
# mypy: disable-error-code="attr-defined, no-any-return, unused-ignore"

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from hloopt.compilers.pjrt_api import MEMORY_STATS
from hloopt.compilers.plugin_child import answer_with, end_with_parent
from hloopt.xla.child import hlo_bindings


def main(path: str) -> None:
    """Do a job, and write the answer as a whole."""
    job = json.loads(Path(path).read_text(encoding="utf-8"))
    end_with_parent(path, job["parent"])
    try:
        found: dict[str, Any] = {"ok": _compiled(job)}
    except (ImportError, AttributeError) as error:
        found = {"unfit": f"jaxlib cannot be used: {error}"}
    except Exception as error:  # XLA's own, of several types
        found = {"refused": str(error)}
    answer_with(job["answer"], found)


def _compiled(job: dict[str, Any]) -> dict[str, Any]:
    """The executable's figures. jaxlib compiles MLIR only, so HLO takes a way around."""
    from jaxlib import _jax, xla_client

    client = xla_client.make_cpu_client(num_devices=job["replicas"] * job["partitions"])
    devices = _jax.DeviceList(tuple(client.devices()))
    program = _program(Path(job["program"]).read_bytes(), job["format"])
    begin = time.perf_counter()
    executable = client.compile_and_load(program, devices, _options(job))
    seconds = time.perf_counter() - begin
    stats = executable.get_compiled_memory_stats()
    memory = {name: _figure(stats, name) for name in MEMORY_STATS}
    return {"memory": memory, "seconds": seconds}


def _program(code: bytes, form: str) -> Any:
    from jaxlib import _jax

    if form == "mlir":
        return code
    hlo = hlo_bindings()
    module = hlo.hlo_module_from_text(code.decode())
    computation = hlo.XlaComputation(module.as_serialized_hlo_module_proto())
    return _jax.mlir.xla_computation_to_mlir_module(computation)


def _options(job: dict[str, Any]) -> Any:
    from jaxlib import _jax

    options = _jax.CompileOptions()
    build = options.executable_build_options
    options.num_replicas = build.num_replicas = job["replicas"]
    options.num_partitions = build.num_partitions = job["partitions"]
    build.use_spmd_partitioning = job["partitions"] > 1
    build.use_shardy_partitioner = job["shardy"]
    return options


def _figure(stats: Any, name: str) -> int:
    attribute = "peak_memory" if name == "peak" else f"{name}_size"
    return int(getattr(stats, f"{attribute}_in_bytes", 0))


if __name__ == "__main__":
    main(sys.argv[1])
