"""The scopes that a program gave its operations, as op_names have them."""

from __future__ import annotations

import re
from dataclasses import dataclass

_WRAPPED = re.compile(r"(\w+)\((.*)\)$")
_BRANCH = re.compile(r"branch_\d+_fun$")
_NO_SCOPES = frozenset(
    (
        *("while", "body", "cond", "closed_call", "checkpoint", "rematted_computation"),
        *("custom_jvp_call", "custom_vjp_call", "core_call", "remat", "pjit", "shard_map"),
    )
)
"""Parts of op_name that JAX puts around a call and a loop; around a branch `branch_1_fun`."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The parts of an op_name that a program gave, and whether it is of the backward pass."""

    parts: tuple[str, ...]
    is_backward: bool

    @property
    def labels(self) -> tuple[str, ...]:
        """The parts as people read them: the outermost says which pass it is of."""
        if not self.is_backward:
            return self.parts
        return tuple([f"{part}, backward" for part in self.parts[:1]]) + self.parts[1:]


def scope_of(op_name: str) -> Scope:
    """The scope of an op_name, without the operation, which is its last part.

    `jit(step)/transpose(jvp(layers))/while/body/mlp/dot_general` is layers, mlp, backward.
    """
    parts = []
    is_backward = False
    for part in _split(op_name)[1:-1]:
        while (wrapped := _WRAPPED.match(part)) is not None:
            is_backward |= wrapped[1] == "transpose"
            part = wrapped[2]
        if part and part not in _NO_SCOPES and not _BRANCH.match(part):
            parts.append(part)
    return Scope(tuple(parts), is_backward)


def _split(op_name: str) -> list[str]:
    """The parts between slashes that are in no parentheses."""
    parts, depth, start = [], 0, 0
    for place, char in enumerate(op_name):
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
        elif char == "/" and depth <= 0:
            parts.append(op_name[start:place])
            start = place + 1
    return [*parts, op_name[start:]]
