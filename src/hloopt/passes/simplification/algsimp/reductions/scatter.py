"""Rules for scatter."""

from __future__ import annotations

from hloopt.ir.attributes.typed import dimensions_of
from hloopt.ir.attributes.values import format_ints, parse_int, parse_ints
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.passes.rewriting.rules.pattern import either, op
from hloopt.passes.rewriting.rules.rule import Missed, Result, rule
from hloopt.passes.simplification.algsimp.options import AlgsimpMatch
from hloopt.passes.simplification.algsimp.reductions.reducers import operation_of
from hloopt.passes.simplification.algsimp.shapes import has_zero, inverse
from hloopt.passes.simplification.algsimp.terms import only_user

_NUMBERS = (
    *("update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims"),
    *("input_batching_dims", "scatter_indices_batching_dims", "index_vector_dim"),
)


def _is_sum(x: Instruction) -> bool:
    """Whether a value is a scatter that adds to one array, and is used once."""
    return (
        x.opcode is Opcode.SCATTER
        and len(x.operands) == 3
        and only_user(x) is not None
        and operation_of(x.called[0]) is Opcode.ADD
        and not x.has_control_dependencies
    )


@rule(
    either(
        op("add", op("scatter").named("a"), "b"),
        op("add", "a", op("scatter").named("b")),
    ),
    layouts="insensitive",
    floats="finite",
)
def add_of_scatters(m: AlgsimpMatch) -> Result:
    """add(scatter(o1, i1, u1), scatter(o2, i2, u2)) → one scatter of o1 + o2 by all indices and
    updates, or two in a row where their numbers differ; with one scatter the other value is added
    to its operand."""
    scatters = [x for x in (m.a, m.b) if _is_sum(x)]
    if not scatters or m.a is m.b:
        return None
    build, shape = m.build, m.root.shape
    if len(scatters) == 1:
        (scatter,) = scatters
        whole, indices, updates = scatter.operands
        other = m.b if scatter is m.a else m.a
        pair = (whole, other) if scatter is m.a else (other, whole)
        total = build.make("add", *pair, shape=shape)
        return build.clone(scatter, [total, indices, updates], shape)
    first, second = scatters
    if first.operands[1].shape.rank != second.operands[1].shape.rank or not _has_batch(first):
        return None
    added = sum(s.operands[2].shape.element_count() for s in scatters)
    if added >= shape.element_count():
        return None
    total = build.make("add", first.operands[0], second.operands[0], shape=shape)
    if not _are_alike(first, second):
        inner = build.clone(second, [total, *second.operands[1:]], shape)
        return build.clone(first, [inner, *first.operands[1:]], shape)
    along = _concatenated(first, second)
    if along is None:
        return Missed("their indices differ in more than one dimension, or are all of batches")
    joined = [
        build.concatenate([s.operands[number] for s in scatters], dimension)
        for number, dimension in ((1, along[0]), (2, along[1]))
    ]
    return build.clone(first, [total, *joined], shape)


def _has_batch(scatter: Instruction) -> bool:
    """Whether it has dimensions of indices beside the index vector."""
    indices = scatter.operands[1].shape
    return indices.rank > (_vector_of(scatter) < indices.rank)


def _vector_of(scatter: Instruction) -> int:
    return parse_int(scatter.attributes.get("index_vector_dim", "0"))


def _are_alike(first: Instruction, second: Instruction) -> bool:
    """Whether two scatters agree in all that one scatter by both their indices has once."""
    a, b = first.attributes, second.attributes
    if any(a.get(name) != b.get(name) for name in _NUMBERS):
        return False
    if any(
        attributes.get(name) == "true"
        for attributes in (a, b)
        for name in ("indices_are_sorted", "unique_indices")
    ):
        return False
    for ours, theirs in zip(first.operands[1:], second.operands[1:], strict=True):
        if ours.shape.element_type is not theirs.shape.element_type:
            return False
    updates, more = first.operands[2].shape.dimensions, second.operands[2].shape.dimensions
    window = parse_ints(a.get("update_window_dims", "{}"))
    return all(updates[d] == more[d] for d in window)


def _concatenated(first: Instruction, second: Instruction) -> tuple[int, int] | None:
    """The dimensions of indices and of updates along which two scatters can be joined."""
    old, new = first.operands[1].shape, second.operands[1].shape
    window = parse_ints(first.attributes.get("update_window_dims", "{}"))
    vector = _vector_of(first)
    fixed = parse_ints(first.attributes.get("scatter_indices_batching_dims", "{}"))
    batch = [d for d in range(old.rank) if d != vector]
    differ = [d for d in range(old.rank) if old.dimensions[d] != new.dimensions[d]]
    usable = [d for d in batch if d not in fixed]
    if any(d not in usable for d in differ) or len(differ) > 1 or not usable:
        return None
    along = differ[0] if differ else usable[0]
    places = [d for d in range(first.operands[2].shape.rank) if d not in window]
    return along, places[batch.index(along)]


@rule(op("scatter"))
def scatter_of_nothing(m: AlgsimpMatch) -> Result:
    """A scatter whose updates have no elements → its operands."""
    count = len(m.root.operands) // 2
    if not all(has_zero(update.shape) for update in m.root.operands[count + 1 :]):
        return None
    if not m.root.shape.is_tuple:
        return m.if_compatible(m.root.operands[0])
    return m.build.make("tuple", *m.root.operands[:count], shape=m.root.shape)


@rule(op("scatter", "x", "indices", "updates"))
def scatter_of_whole(m: AlgsimpMatch) -> Result:
    """A scatter by no indices of an update of the shape of the result → map of the reducer."""
    root = m.root
    if root.shape.is_tuple or m.indices.shape.element_count():
        return None
    same = {i.shape.dimensions for i in (m.x, m.updates, root)}
    types = {i.shape.type_name for i in (m.x, m.updates, root)}
    window = parse_ints(root.attributes.get("update_window_dims", "{}"))
    if len(same) > 1 or len(types) > 1 or len(window) != m.updates.shape.rank:
        return None
    return m.build.make(
        "map", m.x, m.updates, shape=root.shape, called=root.called,
        attributes={"dimensions": format_ints(range(root.shape.rank))},
    )  # fmt: skip


@rule(op("transpose", op("scatter", "x", "indices", "updates").one_use().named("scatter")),
      layouts="insensitive", option="enable_fold_transpose_into_scatter")  # fmt: skip
def transpose_of_scatter(m: AlgsimpMatch) -> Result:
    """transpose(scatter(x, i, u)) → scatter(transpose(x), i, transpose(u)) for scatters of one
    array in the form of scatter_simplifier, without batching dimensions."""
    attributes, rank = m.scatter.attributes, m.root.shape.rank
    if m.scatter.has_control_dependencies or m.indices.shape.rank != 2:
        return None
    if _vector_of(m.scatter) != 1 or parse_ints(attributes.get("inserted_window_dims", "{}")):
        return None
    if parse_ints(attributes.get("input_batching_dims", "{}")):
        return None
    window = parse_ints(attributes.get("update_window_dims", "{}"))
    if window != tuple(range(1, rank + 1)):
        return None
    order = dimensions_of(m.root)
    x = m.build.transpose(m.x, order)
    updates = m.build.transpose(m.updates, (0, *[d + 1 for d in order]))
    made = m.build.clone(m.scatter, [x, m.indices, updates], m.root.shape)
    indexed = parse_ints(attributes.get("scatter_dims_to_operand_dims", "{}"))
    places = inverse(order)
    made.set_attribute("scatter_dims_to_operand_dims", format_ints(places[d] for d in indexed))
    return made


ADD_RULES = (add_of_scatters,)
RULES = (scatter_of_nothing, scatter_of_whole)
