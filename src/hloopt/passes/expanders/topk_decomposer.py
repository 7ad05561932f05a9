"""Write top-k as a sort and slices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hloopt.ir.attributes.values import Slice
from hloopt.ir.computation import Computation
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape, array_shape, tuple_shape
from hloopt.pass_framework.base import PassOptions, XlaPass, option, register
from hloopt.passes.expanders.packed_topk import is_packable, packed_topk
from hloopt.passes.rewriting.replace import inherit, replace_instruction
from hloopt.passes.rewriting.rules import EDITED, Builder, Match, Missed, Result, RulePass, op, rule

_UNSTABLE = "is_stable = false"


@rule(
    op(("topk", "custom-call"), "x").where(
        lambda i: i.opcode is Opcode.TOPK or custom_call_target(i) == "TopK"
    ),
    moves_control=True,
)
def sort_and_slice(match: Match) -> Result:
    """topk(x, k) -> the first k elements of sort(x, iota), along the last dimension."""
    root, x = match.root, match.x
    wanted = match.options.should_decompose
    if wanted is not None and not wanted(root):
        return Missed("should_decompose leaves it out")
    if not x.shape.rank or not root.shape.is_tuple or len(root.shape.elements) != 2:
        return Missed("its operand is a scalar, or it does not give values and indices")
    if root.opcode is Opcode.CUSTOM_CALL and len(root.called) != 1:
        return Missed("it calls no comparator")
    if root.opcode is Opcode.TOPK and is_packable(root):
        return packed_topk(match)
    user = _reader_of_values(root)
    comparator = root.called[0] if root.called else _comparator(root, with_indices=user is None)
    if len(comparator.parameters) > 2:
        return _with_indices(match, comparator)
    if user is None:
        return Missed("its comparator takes no indices, which are read")
    sort = _sort(match, [x], x.shape, comparator)
    inherit(root, sort)
    root.move_control_dependencies_to(sort)
    replace_instruction(user, _first(match.build, sort, root.shape.elements[0]))
    return EDITED


@register(
    "topk-decomposer",
    preserves="bits",
    xla=XlaPass("TopkDecomposer", "xla/service/topk_rewriter.h"),
)
class TopkDecomposer(RulePass):
    """Replace `topk` and custom calls `TopK` by a sort along the last dimension and slices.

    The sort takes an s32 iota as well, and is stable unless the operation says that it need not
    be. Where only the values are read it takes these alone, unless a custom call's comparator takes
    indices, too. The largest of fewer than 65536 bf16 values are found by one sort of s32 keys,
    value and index in one number. Linear in the number of instructions.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        should_decompose: Callable[[Instruction], bool] | None = option(
            None, "which operations are replaced"
        )

    options: Options
    rules = (sort_and_slice,)
    max_sweeps = 1


def _with_indices(match: Match, comparator: Computation) -> Instruction:
    build, x, root = match.build, match.x, match.root
    shapes = [x.shape, x.shape.with_element_type("s32")]
    positions = build.iota(shapes[1], x.shape.rank - 1)
    sort = _sort(match, [x, positions], tuple_shape(shapes), comparator)
    elements = [
        build.make("get-tuple-element", sort, shape=shape, attributes={"index": str(n)})
        for n, shape in enumerate(shapes)
    ]
    return build.make(
        "tuple", *[_first(build, e, root.shape.elements[n]) for n, e in enumerate(elements)]
    )


def _reader_of_values(topk: Instruction) -> Instruction | None:
    """The reader of the values, if nothing else reads a top-k."""
    user = next(iter(topk.users), None)
    is_value = user is not None and user.opcode is Opcode.GET_TUPLE_ELEMENT and not user.tuple_index
    return None if not is_value or len(topk.users) > 1 or topk.is_root else user


def _sort(
    match: Match, operands: list[Instruction], shape: Shape, comparator: Computation
) -> Instruction:
    attributes = {"dimensions": f"{{{match.x.shape.rank - 1}}}"}
    if _is_stable(match.root):
        attributes["is_stable"] = "true"
    return match.build.make(
        "sort", *operands, shape=shape, called=(comparator,), attributes=attributes
    )


def _is_stable(root: Instruction) -> bool:
    if root.opcode is Opcode.TOPK:
        return root.attributes.get("is_stable", "true") == "true"
    return _UNSTABLE not in root.attributes.get("backend_config", "")


def _first(build: Builder, values: Instruction, shape: Shape) -> Instruction:
    """The first elements along the last dimension, as many as a shape has."""
    return build.slice(values, [Slice(0, size, 1) for size in shape.dimensions], shape)


def _comparator(topk: Instruction, *, with_indices: bool) -> Computation:
    """A computation that orders values, or pairs of values and indices, as a top-k does."""
    is_largest = topk.attributes.get("largest", "true") == "true"
    name = "compare-greater-than" if is_largest else "compare-less-than"
    made = topk.parent.module.add_computation(name)
    value = topk.operands[0].shape.type_name
    kinds = [value, "s32"] if with_indices else [value]
    parameters = [
        made.add(Opcode.PARAMETER, array_shape(kind), name=f"p.{n // 2}.{side}", payload=str(n))
        for n, (kind, side) in enumerate(
            [(kind, side) for kind in kinds for side in ("lhs", "rhs")]
        )
    ]
    attributes = {"direction": "GT" if is_largest else "LT"}
    kind = topk.operands[0].shape.element_type
    if kind is not None and kind.is_floating:
        attributes["type"] = "TOTALORDER"
    made.set_root(
        made.add(Opcode.COMPARE, array_shape("pred"), parameters[:2], attributes=attributes)
    )
    return made
