"""A shard_map, and a product of sharded arrays, on 8 devices: what the API says, as JSON.

`python sharded_program.py FOLDER`, with a folder for JAX's cache of compilations. A process of its
own, because XLA's flags say how many devices there are. The mesh has its devices backwards: the
number of a partition is not that of its device.
"""

# jax is typed in part only:
# mypy: disable-error-code="attr-defined, no-untyped-call, no-any-return, operator"
# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import json
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import hloopt.jax
from hloopt.jax import Stage
from hloopt.testing import assert_collectives

STAGES: tuple[Stage, ...] = ("before", "spmd", "after")
MESH = Mesh(np.array(jax.devices())[::-1], ("x",))


@jax.jit
def mapped(x: jax.Array, w: jax.Array) -> dict[str, jax.Array]:
    def body(x: jax.Array, w: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.lax.psum(x @ w, "x"), x + jax.lax.axis_index("x")

    parts = jax.shard_map(body, mesh=MESH, in_specs=(P("x"), P()), out_specs=(P(), P("x")))
    total, rows = parts(x, w)
    return {"total": total, "rows": rows}


def product(x: jax.Array, w: jax.Array) -> jax.Array:
    return x @ w


def answers(program: Any, *args: jax.Array) -> dict[str, Any]:
    """What each stage has, and how far the interpreter's results are off, all sizes right."""
    found: dict[str, Any] = {}
    for stage in STAGES:
        module = hloopt.jax.module(program, *args, stage=stage)
        run = hloopt.jax.run(program, *args, stage=stage)
        assert jax.tree.structure(run.ours) == jax.tree.structure(run.theirs)
        found[stage] = {
            "partitions": module.num_partitions,
            "parameters": [each.shape.text for each in module.entry.parameters],
            "difference": run.difference,
        }
    return found


def main() -> None:
    jax.config.update("jax_compilation_cache_dir", sys.argv[1])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    random = np.random.default_rng(0)
    x = jax.device_put(jnp.asarray(random.standard_normal((16, 8)), jnp.float32))
    rows = jax.device_put(x, NamedSharding(MESH, P("x")))
    columns = jax.device_put(x.T, NamedSharding(MESH, P(None, "x")))
    program = jax.jit(product, donate_argnums=0)
    found = {"mapped": answers(mapped, x, x.T), "product": answers(program, rows, columns)}
    assert not rows.is_deleted()
    texts = [hloopt.jax.text(mapped, x, x.T, stage="spmd") for _ in range(2)]
    assert texts[0] == texts[1]
    assert jax.config.jax_enable_compilation_cache
    assert_collectives(hloopt.jax.module(mapped, x, x.T), all_reduce=1)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
