"""XLA:CPU in a process of its own, since it ends the whole process over some modules.

Run as a script, without the rest of the package. Reads pickled questions `(text, replicas,
partitions, arguments)` from stdin, where arguments are the arrays of each device, and answers on
stdout: `("ok", outputs by device)`, `("missing", why)` or `("refused", XLA's message)`.
"""

# jaxlib is typed in part only:
# mypy: disable-error-code="attr-defined, no-any-return, unused-ignore"

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Sequence
from functools import cache, lru_cache
from types import SimpleNamespace
from typing import Any

_EXECUTABLES = 4
"""Programs to keep compiled: a comparison runs two of them in turn."""


def main() -> None:
    """Answer questions until stdin ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what XLA writes to stdout is no answer
    while True:
        try:
            question = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(_answer(*question), answers, protocol=5)
        answers.flush()


def _answer(
    text: str, replicas: int, partitions: int, arguments: Sequence[Sequence[Any]]
) -> tuple[str, Any]:
    try:
        return "ok", _run(text, replicas, partitions, arguments)
    except (ImportError, AttributeError) as error:
        return "missing", str(error)
    except Exception as error:  # XLA's own, of several types
        return "refused", str(error)


def _run(
    text: str, replicas: int, partitions: int, arguments: Sequence[Sequence[Any]]
) -> list[list[Any]]:
    """The output arrays of each device."""
    from jaxlib import _jax

    executable = _compiled(text, replicas, partitions)
    devices = _client(replicas * partitions).devices()
    # Replicated arrays would be copied from the first device.
    sharding = _jax.GSPMDSharding(devices, hlo_bindings().HloSharding.manual())
    buffers = [_put(shards, sharding, devices) for shards in zip(*arguments, strict=True)]
    outputs = executable.execute_sharded(buffers).disassemble_into_single_device_arrays()
    arrays = [[_to_numpy(shard) for shard in output] for output in outputs]
    return [list(shards) for shards in zip(*arrays, strict=True)] or [[] for _ in devices]


def _put(shards: Sequence[Any], sharding: Any, devices: Sequence[Any]) -> Any:
    """One argument of all devices, as jaxlib takes it."""
    import numpy as np
    from jaxlib import _jax

    rows = [np.asarray(shard, order="C") for shard in shards]
    aval = SimpleNamespace(shape=rows[0].shape, dtype=rows[0].dtype, weak_type=False)
    return _jax.batched_device_put(aval, sharding, rows, devices, enable_x64=True)


def _to_numpy(array: Any) -> Any:
    found, _ = array._single_device_array_to_np_array_did_copy()
    return found


def hlo_bindings() -> Any:
    """The module of jaxlib with the classes of HLO. Raises ImportError without jaxlib."""
    from jaxlib import _jax

    try:
        from jaxlib import _hlo
    except ImportError:  # before jaxlib 0.10 they are among the others
        return _jax
    return _hlo


@cache
def _client(devices: int) -> Any:
    from jaxlib import xla_client

    return xla_client.make_cpu_client(num_devices=devices)


@lru_cache(_EXECUTABLES)
def _compiled(text: str, replicas: int, partitions: int) -> Any:
    """The program for these devices, taken as already partitioned. jaxlib compiles MLIR only."""
    from jaxlib import _jax

    hlo = hlo_bindings()
    computation = hlo.XlaComputation(
        hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    )
    options = _jax.CompileOptions()
    build = options.executable_build_options
    options.num_replicas = build.num_replicas = replicas
    options.num_partitions = build.num_partitions = partitions
    build.use_spmd_partitioning = partitions > 1
    if partitions > 1:
        build.debug_options.xla_disable_hlo_passes = "spmd-partitioner"
    client = _client(replicas * partitions)
    return client.compile_and_load(
        _jax.mlir.xla_computation_to_mlir_module(computation),
        _jax.DeviceList(tuple(client.devices())),
        options,
    )


if __name__ == "__main__":
    main()
