"""Run a small transformer step with JAX on eight devices, and keep what went in and came out.

`python transformer_run.py OUT CONFIG`, where CONFIG holds the fields of a Config as JSON. Writes
`{"inputs": …, "outputs": …, "whole_inputs": …, "whole_outputs": …}` as a pickle: arrays by device
and leaf, and by leaf. A process of its own, because XLA's flags are read once.
"""

# jax is typed in part only:
# mypy: disable-error-code="no-untyped-call, no-any-return, untyped-decorator"

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np

from testdata_lib.transformer import Config, lower_transformer


def main() -> None:
    """Compile, which leaves XLA's dumps where the flags say, and run on random arrays."""
    out, config = Path(sys.argv[1]), Config(**json.loads(sys.argv[2]))
    lowered = lower_transformer(config)
    compiled = lowered.compile()
    random = np.random.default_rng(0)
    infos, tree = jax.tree_util.tree_flatten_with_path(lowered.args_info[0])
    shardings = jax.tree.leaves(compiled.input_shardings[0])
    inputs = [
        jax.device_put(_values(random, jax.tree_util.keystr(path), info, config), sharding)
        for (path, info), sharding in zip(infos, shardings, strict=True)
    ]
    devices = list(shardings[0].mesh.devices.flat)
    answer = {
        "inputs": _shards(inputs, devices),
        "whole_inputs": list(map(np.asarray, inputs)),
    }
    outputs = jax.tree.leaves(compiled(*jax.tree.unflatten(tree, inputs)))
    answer["outputs"] = _shards(outputs, devices)
    answer["whole_outputs"] = list(map(np.asarray, outputs))
    out.write_bytes(pickle.dumps(answer))


def _values(random: np.random.Generator, path: str, info: Any, config: Config) -> Any:
    """A value for a leaf of the arguments: as in the middle of a training."""
    if "step" in path:
        return np.array(7, info.dtype)
    if path.startswith("[1]"):
        return random.integers(0, config.vocabulary, info.shape).astype(info.dtype)
    values = random.standard_normal(info.shape)
    if "['v']" in path:  # second moments
        values = 0.01 + values**2
    return values.astype(info.dtype)


def _shards(arrays: list[Any], devices: list[Any]) -> list[list[Any]]:
    """The arrays of each device."""
    by_device = [{s.device: np.asarray(s.data) for s in a.addressable_shards} for a in arrays]
    return [[shards[device] for shards in by_device] for device in devices]


if __name__ == "__main__":
    main()
