"""Relations of dimensions by operations on whole arrays: elementwise, reshapes, sums."""

from __future__ import annotations

from collections.abc import Sequence

from hloopt.ir.attributes.typed import labels_of, padding_of, window_of
from hloopt.ir.attributes.values import (
    parse_bool,
    parse_int,
)
from hloopt.ir.attributes.values.windows import WindowDimension
from hloopt.ir.custom_targets import IDENTITIES, NEW_BUFFERS, custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY, Opcode
from hloopt.shrink.factors import Factor
from hloopt.shrink.flow import Dimensions, Flow, Leaves, ints, relation

_TRIVIAL = WindowDimension()


@relation(
    *(ELEMENTWISE_UNARY | ELEMENTWISE_BINARY) - {Opcode.COPY, Opcode.BITCAST_CONVERT},
    *(Opcode.SELECT, Opcode.CLAMP, Opcode.MAP),
)
def _elementwise(flow: Flow, instruction: Instruction) -> Leaves:
    """Arrays of one size, and scalars."""
    result: Leaves | None = None
    for operand in instruction.operands:
        leaves = flow.values[operand]
        if operand.shape.rank != instruction.shape.rank:
            continue
        if result is None:
            result = leaves
        else:
            flow.join(result, leaves, instruction)
    return flow.fresh(instruction.shape) if result is None else result


# -- the same elements elsewhere ---------------------------------------------------------------


@relation(Opcode.RESHAPE)
def _reshape(flow: Flow, instruction: Instruction) -> Leaves:
    result = flow.fresh(instruction.shape)
    flow.products(flow.of(instruction.operands[0]), result[0], instruction)
    return result


@relation(Opcode.BITCAST)
def _bitcast(flow: Flow, instruction: Instruction) -> Leaves:
    """A reshape of the elements in the order they lie in memory."""
    (operand,) = instruction.operands
    if operand.shape.is_tuple:
        return flow.stay_all(instruction, "bitcast of a tuple")
    if operand.shape.element_count() != instruction.shape.element_count():
        return flow.stay_all(instruction, "bitcast to elements of another size")
    result = flow.fresh(instruction.shape)
    before = _in_memory(flow.of(operand), operand.shape.layout.minor_to_major)
    after = _in_memory(result[0], instruction.shape.layout.minor_to_major)
    flow.products(before, after, instruction)
    return result


def _in_memory(dimensions: Dimensions, minor_to_major: Sequence[int]) -> Dimensions:
    return tuple(dimensions[d] for d in reversed(minor_to_major))


@relation(Opcode.BITCAST_CONVERT)
def _bitcast_convert(flow: Flow, instruction: Instruction) -> Leaves:
    result = flow.fresh(instruction.shape)
    operand = flow.of(instruction.operands[0])
    for a, b in zip(operand, result[0], strict=False):
        flow.same(a, b, instruction)
    common = min(len(operand), len(result[0]))
    flow.stay((*operand[common:], *result[0][common:]), instruction, "the parts of an element")
    return result


@relation(Opcode.TRANSPOSE)
def _transpose(flow: Flow, instruction: Instruction) -> Leaves:
    operand = flow.of(instruction.operands[0])
    return [tuple(operand[d] for d in ints(instruction, "dimensions"))]


@relation(Opcode.BROADCAST)
def _broadcast(flow: Flow, instruction: Instruction) -> Leaves:
    (result,) = flow.fresh(instruction.shape)
    mapped = list(result)
    places = ints(instruction, "dimensions")
    for place, factor in zip(places, flow.of(instruction.operands[0]), strict=True):
        mapped[place] = factor
    return [tuple(mapped)]


@relation(Opcode.IOTA)
def _iota(flow: Flow, instruction: Instruction) -> Leaves:
    flow.iotas.append((instruction, parse_int(instruction.attributes["iota_dimension"])))
    return flow.fresh(instruction.shape)


@relation(Opcode.REVERSE)
def _reverse(flow: Flow, instruction: Instruction) -> Leaves:
    (operand,) = instruction.operands
    for d in ints(instruction, "dimensions"):
        _stay_if_computed(flow, instruction, operand, d)
    return flow.values[operand]


def _stay_if_computed(
    flow: Flow, instruction: Instruction, operand: Instruction, dimension: int
) -> None:
    """Constants may stand for such values elsewhere."""
    if flow.facts.of(operand).computed and not flow.uniformity.holds(operand, dimension):
        reason = f"{instruction.opcode} of values that do not depend on the inputs"
        flow.stay([flow.of(operand)[dimension]], instruction, reason)


@relation(Opcode.SORT)
def _sort(flow: Flow, instruction: Instruction) -> Leaves:
    leaves = [leaf for operand in instruction.operands for leaf in flow.values[operand]]
    for other in leaves[1:]:
        flow.join(leaves[:1], [other], instruction)
    if len(leaves) == 1:  # an iota among several is the order that an argsort asks for
        dimension = ints(instruction, "dimensions")[0]
        _stay_if_computed(flow, instruction, instruction.operands[0], dimension)
    return leaves


# -- sums ----------------------------------------------------------------------------------------


def _stay_if_counted(
    flow: Flow, instruction: Instruction, operands: Sequence[tuple[Instruction, int]]
) -> None:
    """Sums over equal or computed values depend on how many there are, also if they are a part."""
    if any(_has_equal_part(flow, operand, d) for operand, d in operands):
        reason = f"{instruction.opcode} of some equal values, which counts them"
    elif all(flow.uniformity.holds(operand, d) for operand, d in operands):
        reason = f"{instruction.opcode} of equal values, which counts them"
    elif all(flow.facts.of(operand).computed for operand, _ in operands):
        reason = f"{instruction.opcode} of values that do not depend on the inputs"
    else:
        return
    flow.stay([flow.of(operand)[d] for operand, d in operands], instruction, reason)


def _has_equal_part(flow: Flow, operand: Instruction, dimension: int) -> bool:
    """Whether known values were put beside others along a dimension."""
    if operand.opcode is Opcode.CONCATENATE and ints(operand, "dimensions") == (dimension,):
        return any(
            part.shape.dimensions[dimension] > 1 and flow.uniformity.holds(part, dimension)
            for part in operand.operands
        )
    if operand.opcode is Opcode.PAD:
        padding = padding_of(operand)[dimension]
        value = operand.operands[1]
        is_zero = value.opcode is Opcode.CONSTANT and value.payload.strip() in ("0", "-0")
        return max(padding.low, padding.high) > 0 and not is_zero
    return False


@relation(Opcode.REDUCE)
def _reduce(flow: Flow, instruction: Instruction) -> Leaves:
    inputs = instruction.operands[: len(instruction.operands) // 2]
    leaves = [flow.of(operand) for operand in inputs]
    for other in leaves[1:]:
        flow.join(leaves[:1], [other], instruction)
    reduced = ints(instruction, "dimensions")
    for operand in inputs:
        for d in reduced:
            _stay_if_counted(flow, instruction, [(operand, d)])
    return [tuple(f for d, f in enumerate(leaf) if d not in reduced) for leaf in leaves]


@relation(Opcode.DOT)
def _dot(flow: Flow, instruction: Instruction) -> Leaves:
    if len(instruction.operands) > 2 or "sparsity" in instruction.attributes:
        return flow.stay_all(instruction, "sparse dot")
    lhs, rhs = instruction.operands
    left, right = flow.of(lhs), flow.of(rhs)
    batch = ints(instruction, "lhs_batch_dims"), ints(instruction, "rhs_batch_dims")
    sums = ints(instruction, "lhs_contracting_dims"), ints(instruction, "rhs_contracting_dims")
    for a, b in zip(*batch, strict=True):
        flow.same(left[a], right[b], instruction)
    for a, b in zip(*sums, strict=True):
        flow.same(left[a], right[b], instruction)
        _stay_if_counted(flow, instruction, [(lhs, a), (rhs, b)])
    free_left = [f for d, f in enumerate(left) if d not in (*batch[0], *sums[0])]
    free_right = [f for d, f in enumerate(right) if d not in (*batch[1], *sums[1])]
    return [(*(left[d] for d in batch[0]), *free_left, *free_right)]


@relation(Opcode.CONVOLUTION)
def _convolution(flow: Flow, instruction: Instruction) -> Leaves:
    labels = labels_of(instruction)
    window = window_of(instruction)
    (result,) = flow.fresh(instruction.shape)
    (source, kernel) = (flow.of(operand) for operand in instruction.operands)
    lhs, rhs = instruction.operands
    features = (
        *(source[labels.input_feature_dimension], kernel[labels.kernel_input_feature_dimension]),
        *(kernel[labels.kernel_output_feature_dimension], result[labels.output_feature_dimension]),
    )
    batches = source[labels.input_batch_dimension], result[labels.output_batch_dimension]
    counts = ("feature_group_count", "batch_group_count")
    if any(parse_int(instruction.attributes.get(name, "1")) != 1 for name in counts):
        flow.stay((*features, *batches), instruction, "convolution in groups")
    else:
        flow.same(features[0], features[1], instruction)
        flow.same(features[2], features[3], instruction)
        flow.same(*batches, instruction)
        contracted = labels.input_feature_dimension, labels.kernel_input_feature_dimension
        _stay_if_counted(flow, instruction, [(lhs, contracted[0]), (rhs, contracted[1])])
    spatial = (
        *(labels.input_spatial_dimensions, labels.kernel_spatial_dimensions),
        labels.output_spatial_dimensions,
    )
    for one, (i, k, o) in zip(window.dimensions, zip(*spatial, strict=True), strict=True):
        if one == _TRIVIAL:
            flow.same(source[i], result[o], instruction)
        else:
            places = source[i], kernel[k], result[o]
            flow.stay(places, instruction, "the window of a convolution")
    return [result]


@relation(Opcode.REDUCE_WINDOW)
def _reduce_window(flow: Flow, instruction: Instruction) -> Leaves:
    inputs = instruction.operands[: len(instruction.operands) // 2]
    window = window_of(instruction).dimensions
    results = flow.fresh(instruction.shape)
    for operand, result in zip(inputs, results, strict=True):
        flow.join([flow.of(inputs[0])], [flow.of(operand)], instruction)
        for d, (a, b) in enumerate(zip(flow.of(operand), result, strict=True)):
            one = window[d] if window else _TRIVIAL
            if one == _TRIVIAL:
                flow.same(a, b, instruction)
            else:
                _relate_window(flow, instruction, d, one, a, b)
                _stay_if_counted(flow, instruction, [(operand, d)])
    return results


def _relate_window(
    flow: Flow, instruction: Instruction, d: int, one: WindowDimension, whole: Factor, part: Factor
) -> None:
    """Windows side by side, or as large as the dimension they end or begin in (a running sum)."""
    all_before = WindowDimension(whole.size, pad_low=whole.size - 1)
    all_after = WindowDimension(whole.size, pad_high=whole.size - 1)
    if one in (all_before, all_after):
        flow.same(whole, part, instruction)
        flow.windows[instruction, d] = whole
    elif one == WindowDimension(one.size, stride=one.size) and whole.size == one.size * part.size:
        window = flow.windows.setdefault((instruction, d), Factor(one.size))
        flow.products([whole], [part, window], instruction)
    else:
        flow.stay([whole, part], instruction, "the window of a reduce-window")


@relation(Opcode.SELECT_AND_SCATTER)
def _select_and_scatter(flow: Flow, instruction: Instruction) -> Leaves:
    operand, source = (flow.of(o) for o in instruction.operands[:2])
    window = window_of(instruction).dimensions
    for d, (a, b) in enumerate(zip(operand, source, strict=True)):
        if window and window[d] != _TRIVIAL:
            flow.stay([a, b], instruction, "the window of a select-and-scatter")
        else:
            flow.same(a, b, instruction)
    return [operand]


# -- one feature, statistics, matrices -----------------------------------------------------------


@relation(Opcode.BATCH_NORM_INFERENCE, Opcode.BATCH_NORM_TRAINING, Opcode.BATCH_NORM_GRAD)
def _batch_norm(flow: Flow, instruction: Instruction) -> Leaves:
    operands = [flow.of(operand) for operand in instruction.operands]
    source = operands[0]
    feature = parse_int(instruction.attributes["feature_index"])
    if instruction.opcode is not Opcode.BATCH_NORM_INFERENCE:
        others = [f for d, f in enumerate(source) if d != feature]
        flow.stay(others, instruction, "statistics, which count elements")
    for other in operands[1:]:
        if len(other) == len(source):
            flow.join([source], [other], instruction)
        if len(other) == 1:
            flow.same(source[feature], other[0], instruction)
    if instruction.opcode is Opcode.BATCH_NORM_INFERENCE:
        return [source]
    return [source, (source[feature],), (source[feature],)]


@relation(Opcode.CHOLESKY)
def _cholesky(flow: Flow, instruction: Instruction) -> Leaves:
    (operand,) = (flow.of(operand) for operand in instruction.operands)
    flow.same(operand[-1], operand[-2], instruction)
    return [operand]


@relation(Opcode.TRIANGULAR_SOLVE)
def _triangular_solve(flow: Flow, instruction: Instruction) -> Leaves:
    matrix, right = (flow.of(operand) for operand in instruction.operands)
    is_left = parse_bool(instruction.attributes.get("left_side", "false"))
    flow.same(matrix[-1], matrix[-2], instruction)
    flow.same(matrix[-1], right[-2 if is_left else -1], instruction)
    flow.join([matrix[:-2]], [right[:-2]], instruction)
    return [right]


@relation(Opcode.FFT)
def _fft(flow: Flow, instruction: Instruction) -> Leaves:
    (result,) = flow.fresh(instruction.shape)
    operand = flow.of(instruction.operands[0])
    rank = len(ints(instruction, "fft_length"))
    before = len(operand) - rank
    flow.join([operand[:before]], [result[:before]], instruction)
    flow.stay((*operand[before:], *result[before:]), instruction, "the length of a transform")
    return [result]


@relation(Opcode.CUSTOM_CALL)
def _custom_call(flow: Flow, instruction: Instruction) -> Leaves:
    target = custom_call_target(instruction)
    if target in NEW_BUFFERS:
        return flow.fresh(instruction.shape)
    shapes = [operand.shape.dimensions for operand in instruction.operands]
    if target in IDENTITIES and shapes == [instruction.shape.dimensions]:
        return flow.values[instruction.operands[0]]
    return flow.stay_all(instruction, f'custom-call of "{target}"')
