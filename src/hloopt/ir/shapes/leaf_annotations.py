"""Annotations of each array of an instruction's shape: shardings, and whether replicas agree."""

from __future__ import annotations

from hloopt.ir.attributes.values.sharding_text import canonical_sharding
from hloopt.ir.attributes.values.strings import split_dictionaries
from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.leaves import leaf_count
from hloopt.patterns import pattern

_MESH_WITHOUT_AXES = pattern(
    r"\{mesh\[[^\]]*\](?:, device_ids=\((?:[^()]|\([^()]*\))*\))?, "
    r"(?:replicated|\[(?:\{\??\}(?:, )?)*\])(?:, replicated=\{[^{}]*\})?(?:, metadata=.*)?\}"
)


def parameter_replication(parameter: Instruction) -> list[bool] | None:
    """`parameter_replication={true,false}`: for each leaf, whether all replicas have the same.

    None where the parameter does not say.
    """
    text = parameter.attributes.get("parameter_replication", "").strip("{} ")
    return [flag.strip() == "true" for flag in text.split(",")] if text else None


def leaf_shardings(instruction: Instruction) -> list[str] | None:
    """The sharding of each leaf, as XLA prints it; None where there is none, or one that is no fit.

    One sharding for a tuple holds for all its leaves. Raises HloSyntaxError.
    """
    text = instruction.attributes.get("sharding")
    if text is None:
        return None
    count = leaf_count(instruction.shape)
    sharding = canonical_sharding(text)
    if not sharding.startswith("{{"):
        return [sharding] * count
    shardings = split_dictionaries(sharding)
    return shardings if shardings is not None and len(shardings) == count else None


def is_replicated(sharding: str) -> bool:
    """Whether a sharding, as XLA prints it, gives the whole array to every device."""
    return sharding.startswith("{replicated") or bool(_MESH_WITHOUT_AXES.fullmatch(sharding))
