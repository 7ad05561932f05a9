"""Compile one of the programs with JAX, run it on random arrays, and keep what JAX says of it.

`python run_program.py NAME FOLDER` writes into FOLDER, in the keys that `hloopt run --input` reads
and `-o` writes:

- `inputs.npz`, `outputs.npz`: the arrays of each device, `PARAMETER@DEVICE`
- `whole_inputs.npz`, `whole_outputs.npz`: the same arrays in one piece, by `PARAMETER`
- `analyses.json`: `memory_analysis()` and `cost_analysis()` of the compiled program

A process of its own, because XLA's flags, which say where dumps go, are read once.
"""

# jax is typed in part only:
# mypy: disable-error-code="no-untyped-call, no-any-return, untyped-decorator"

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
from tests.jax_dumps.programs import PROGRAMS

SIZES = ("argument", "output", "alias", "temp", "generated_code")


def main() -> None:
    """Compile, which leaves XLA's dumps where the flags say, run, and write the answers."""
    name, folder = sys.argv[1], Path(sys.argv[2])
    lowered = PROGRAMS[name]()
    compiled = lowered.compile()
    memory = compiled.memory_analysis()
    assert memory is not None
    sizes = {f"{what}_size_in_bytes": getattr(memory, f"{what}_size_in_bytes") for what in SIZES}
    sizes["peak_memory_in_bytes"] = memory.peak_memory_in_bytes
    analyses = {"memory_analysis": sizes, "cost_analysis": compiled.cost_analysis()}
    (folder / "analyses.json").write_text(json.dumps(analyses, indent=1, sort_keys=True) + "\n")

    random = np.random.default_rng(0)
    infos, tree = jax.tree_util.tree_flatten_with_path(lowered.args_info)
    shardings = jax.tree.leaves(compiled.input_shardings)
    values = [value_of(random, jax.tree_util.keystr(path), info) for path, info in infos]
    inputs = [jax.device_put(*pair) for pair in zip(values, shardings, strict=True)]
    save_arrays(folder, "inputs", inputs)  # now: running donates them
    arguments, keywords = jax.tree.unflatten(tree, inputs)
    save_arrays(folder, "outputs", jax.tree.leaves(compiled(*arguments, **keywords)))


def value_of(random: np.random.Generator, path: str, info: Any) -> Any:
    """A value for a leaf of the arguments: as in the middle of a training."""
    if path.endswith("['step']"):
        return np.array(7, info.dtype)
    if info.dtype == np.int32:  # tokens, which every vocabulary of the programs has
        return random.integers(0, 100, info.shape).astype(info.dtype)
    values = random.standard_normal(info.shape)
    if "['v']" in path:  # second moments
        values = 0.01 + values**2
    elif len(info.shape) > 1:
        values /= np.sqrt(info.shape[-2])
    return values.astype(info.dtype)


def save_arrays(folder: Path, name: str, arrays: list[Any]) -> None:
    """The arrays of each device, and whole."""
    whole: dict[str, Any] = {}
    parts: dict[str, Any] = {}
    for index, array in enumerate(arrays):
        whole[str(index)] = np.asarray(array)
        for shard in sorted(array.addressable_shards, key=lambda shard: shard.device.id):
            parts[f"{index}@{shard.device.id}"] = np.asarray(shard.data)
    np.savez(folder / f"{name}.npz", **parts)
    np.savez(folder / f"whole_{name}.npz", **whole)


if __name__ == "__main__":
    main()
