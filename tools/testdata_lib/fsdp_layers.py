"""The program of docs/tutorial.md: layers in a loop that gathers the sharded weights of each."""

# jax is typed in part only:
# mypy: disable-error-code="no-untyped-call, no-any-return, untyped-decorator"

from __future__ import annotations

import jax
from jax.sharding import PartitionSpec as P

from testdata_lib.arguments import array, mesh_of


def layer(x: jax.Array, w_shard: jax.Array) -> tuple[jax.Array, None]:
    """One layer on a device's rows; its weights are gathered from all devices."""
    w = jax.lax.all_gather(w_shard, "data", tiled=True)
    return jax.nn.relu(x @ w), None


def forward(x: jax.Array, weights: jax.Array) -> jax.Array:
    """All layers, one per trip of a loop."""
    return jax.lax.scan(layer, x, weights)[0]


def lower_fsdp_layers() -> jax.stages.Lowered:
    """Sixteen layers of 4096 x 4096 weights on eight devices."""
    mesh = mesh_of(data=8)
    rows, shards = P("data", None), P(None, "data", None)
    step = jax.shard_map(
        forward, mesh=mesh, in_specs=(rows, shards), out_specs=rows, check_vma=False
    )
    x = array(mesh, (8 * 4096, 4096), rows, "bfloat16")
    return jax.jit(step).lower(x, array(mesh, (16, 4096, 4096), shards, "bfloat16"))
