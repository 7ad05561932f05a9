"""Meshes, and arguments of programs by shape and sharding."""

# jax is typed in part only:
# mypy: disable-error-code="no-untyped-call, no-any-return, untyped-decorator"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

Params = dict[str, Any]
"""Arrays (or shapes, or shardings) by name, nested; layers are a list, or stacked in front."""


def mesh_of(**axes: int) -> Mesh:
    """A mesh by its axes' names and sizes; shardings inside are left to XLA."""
    sizes, names = tuple(axes.values()), tuple(axes)
    return jax.make_mesh(sizes, names, axis_types=(AxisType.Auto,) * len(axes))


def array(mesh: Mesh, shape: Sequence[int], spec: P, dtype: str = "float32") -> Any:
    """An argument by its shape and sharding only; nothing is allocated."""
    return jax.ShapeDtypeStruct(tuple(shape), dtype, sharding=NamedSharding(mesh, spec))
