"""Equality of maps between modules up to automorphisms."""

from __future__ import annotations

from collections.abc import Mapping

from diff_lib.content import label, values
from diff_lib.known_pair import KnownPair, Partners
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.ordering import stable_computation_order, stable_order


def is_equal_up_to_automorphisms(pair: KnownPair, found: Partners) -> bool:
    """Whether an automorphism of one of the modules turns the known map into `found`.

    Where both maps have the same sources, the candidate is `known⁻¹` and then `found`, on the
    module after; where they have the same images, `known` and then `found⁻¹`, on the module
    before. Nodes beyond the maps follow their neighbours. A candidate counts if it is checked to
    be a bijection of all instructions that keeps opcode, shape, payload and all attributes,
    operands in order, control edges, roots, and what is called.
    """
    known = pair.partners
    if len(found) != len(known):
        return False
    if found.keys() == known.keys():
        candidate = {new: found[old] for old, new in known.items()}
        if _is_automorphism(_extended(candidate, pair.after), pair.after):
            return True
    sources = {new: old for old, new in found.items()}
    if sources.keys() == set(known.values()):
        candidate = {old: sources[new] for old, new in known.items()}
        return _is_automorphism(_extended(candidate, pair.before), pair.before)
    return False


def _extended(partial: dict[Instruction, Instruction], module: Module) -> Partners:
    """Extend a partial map greedily: images have equal labels, and read the images of operands."""
    taken = set(partial.values())
    everything = [i for c in stable_computation_order(module) for i in stable_order(c)]
    free: dict[object, list[Instruction]] = {}
    for instruction in everything:
        if instruction not in taken:
            free.setdefault((instruction.opcode, instruction.shape), []).append(instruction)
    whole = dict(partial)
    for instruction in everything:
        if instruction in whole:
            continue
        candidates = free.get((instruction.opcode, instruction.shape), [])
        image = next((each for each in candidates if _may_be(instruction, each, whole)), None)
        if image is not None:
            whole[instruction] = image
            candidates.remove(image)
    return whole


def _may_be(
    instruction: Instruction, image: Instruction, whole: Mapping[Instruction, Instruction]
) -> bool:
    return (
        [whole.get(operand) for operand in instruction.operands] == list(image.operands)
        and {whole[user] for user in instruction.users if user in whole} <= set(image.users)
        and label(instruction) == label(image)
    )


def _is_automorphism(images: Partners, module: Module) -> bool:
    everything = set(module.instructions())
    if images.keys() != everything or set(images.values()) != everything:
        return False
    moved = {node for node, image in images.items() if node is not image}
    around = {near for node in moved for near in (*node.users, *node.control_successors)}
    callers = {caller for node in moved for caller in node.parent.callers}
    same = values(module)
    return all(_keeps_structure(node, images, same) for node in moved | around | callers)


def _keeps_structure(node: Instruction, images: Partners, same: Mapping[Instruction, int]) -> bool:
    """Whether a node and its image have the same label, and neighbours that are images.

    Callees may also be equal computations: modules have many equal reducers.
    """
    image = images[node]
    return (
        [images[operand] for operand in node.operands] == list(image.operands)
        and {images[each] for each in node.control_predecessors} == set(image.control_predecessors)
        and node.is_root == image.is_root
        and images[node.parent.root].parent is image.parent
        and len(node.called) == len(image.called)
        and all(
            images[a.root] is b.root or (same[a.root] == same[b.root] and len(a) == len(b))
            for a, b in zip(node.called, image.called, strict=True)
        )
        and (node is image or label(node) == label(image))
    )
