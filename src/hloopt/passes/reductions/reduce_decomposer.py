"""Let reduces keep the layout of their operand, and copy the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hloopt.ir.attributes.typed import dimensions_of
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.layout import Layout
from hloopt.ir.shapes.shape import Shape, tuple_shape
from hloopt.pass_framework.base import PassOptions, XlaPass, option, register
from hloopt.passes.rewriting.replace import replace_instruction
from hloopt.passes.rewriting.rules import EDITED, Builder, Match, Result, RulePass, op, rule


@rule(op("reduce"), dynamic=True, moves_control=True)
def align_operands(match: Match) -> Result:
    """reduce(a, b, …) -> reduce(a, copy(b), …), where b has another layout than a."""
    root = match.root
    first, *others = root.operands[: len(root.operands) // 2]
    order = first.shape.layout.minor_to_major
    found = [(n, o) for n, o in enumerate(others, 1) if o.shape.layout.minor_to_major != order]
    for number, operand in found:
        root.replace_operand(number, _copy(match.build, operand, first.shape.layout))
    return EDITED if found else None


@rule(op("reduce"), dynamic=True, moves_control=True)
def copy_result(match: Match) -> Result:
    """reduce(x) -> copy(reduce(x)), where the result has another layout than x leaves it."""
    root, build = match.root, match.build
    allowed = match.options.custom_layout_allowed
    if allowed is not None and allowed(root):
        return None
    kept = _kept_order(root)
    leaves = [root.shape] if root.shape.is_array else list(root.shape.elements)
    if all(leaf.layout.minor_to_major == kept for leaf in leaves):
        return None
    shapes = [leaf.with_layout(leaf.layout._replace(minor_to_major=kept)) for leaf in leaves]
    if root.shape.is_array:
        return _copied(match, build.clone(root, root.operands, shapes[0]))
    reduce = build.clone(root, root.operands, tuple_shape(shapes))
    copies = []
    for number, (shape, leaf) in enumerate(zip(shapes, leaves, strict=True)):
        value = build.make(
            "get-tuple-element", reduce, shape=shape, attributes={"index": str(number)}
        )
        copies.append(value if shape is leaf else _copy(build, value, leaf.layout))
    return build.make("tuple", *copies)


@register(
    "reduce-decomposer",
    preserves="bits",
    xla=XlaPass("ReduceDecomposer", "xla/hlo/transforms/expanders/reduce_decomposer.h"),
)
class ReduceDecomposer(RulePass):
    """Let reduces give the layout that their operand leaves, and copy that to the stated one.

    After layout assignment. The operands of a reduce of several arrays get the layout of the first
    one, by copies, too. Where a convert is the only user, it comes between reduce and copy, or goes
    if it keeps the type. Linear in the number of instructions.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        custom_layout_allowed: Callable[[Instruction], bool] | None = option(
            None, "which reduces may have any layout"
        )

    options: Options
    rules = (align_operands, copy_result)


def _kept_order(reduce: Instruction) -> tuple[int, ...]:
    """The layout of the operand without the reduced dimensions."""
    reduced = dimensions_of(reduce)
    operand = reduce.operands[0].shape
    kept = [d for d in range(operand.rank) if d not in reduced]
    number = {old: new for new, old in enumerate(kept)}
    return tuple(number[d] for d in operand.layout.minor_to_major if d in number)


def _copied(match: Match, reduce: Instruction) -> Result:
    """A copy of a reduce in the stated layout; of its convert, where that is all that reads it."""
    root, build = match.root, match.build
    user = next(iter(root.users), None)
    if user is None or len(root.users) > 1 or root.is_root or user.opcode is not Opcode.CONVERT:
        return _copy(build, reduce, root.shape.layout)
    order = reduce.shape.layout.minor_to_major
    converted = reduce
    if user.shape.type_name != reduce.shape.type_name:
        narrow = user.shape.with_layout(user.shape.layout._replace(minor_to_major=order))
        converted = build.clone(user, [reduce], narrow)
    replace_instruction(user, _copy(build, converted, user.shape.layout))
    root.move_control_dependencies_to(reduce)
    return EDITED


def _copy(build: Builder, value: Instruction, layout: Layout) -> Instruction:
    shape: Shape = value.shape.with_layout(layout)
    return build.make("copy", value, shape=shape)
