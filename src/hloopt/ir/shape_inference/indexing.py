"""Gather and scatter."""

from __future__ import annotations

from hloopt.diagnostics import HloVerifyError
from hloopt.ir.shape_inference.operation import Operation, expect_array, show
from hloopt.ir.shape_inference.reduction import check_reducer
from hloopt.ir.shapes.shape import Shape, array_shape, same_kind, tuple_shape

_Dimensions = tuple[int, ...]


class _Indexing:
    """Dimension numbers of a gather or scatter, read from the attributes of these names.

    Dimensions of the result (gather) or the updates (scatter) are either `window` dimensions or
    batch dimensions; operand dimensions in `dropped` or `operand_batching` are in no window.
    """

    def __init__(
        self,
        operation: Operation,
        operand: Shape,
        indices: Shape,
        *,
        window: str,
        dropped: str,
        index_map: str,
        operand_batching: str,
        indices_batching: str,
        indices_name: str,
    ) -> None:
        self.opcode = operation.opcode.value
        self.operand = operand
        self.indices = indices
        self.window = operation.ints(window)
        self.dropped = operation.ints(dropped)
        self.dropped_name = dropped
        self.index_map = operation.ints(index_map)
        self.index_map_name = index_map
        self.operand_batching = operation.optional_ints(operand_batching)
        self.indices_batching = operation.optional_ints(indices_batching)
        self.index_vector_dim = operation.integer("index_vector_dim")
        self.indices_name = indices_name

    def batch_sizes(self) -> list[tuple[int, bool]]:
        """Size and dynamism of the index array's dimensions, without that of the vectors."""
        sizes = list(zip(self.indices.dimensions, self.indices.dynamic, strict=True))
        if self.index_vector_dim < len(sizes):
            del sizes[self.index_vector_dim]
        return sizes

    def window_operand_dimensions(self) -> list[int]:
        """The operand dimensions the window dimensions stand for, in order."""
        left_out = {*self.dropped, *self.operand_batching}
        return [d for d in range(self.operand.rank) if d not in left_out]

    def window_rank(self) -> int:
        """The number of window dimensions wanted; XLA counts a dimension left out twice twice."""
        return self.operand.rank - len(self.dropped) - len(self.operand_batching)

    def check(self) -> None:
        """Check the numbers against the ranks. Raises HloVerifyError."""
        self._check_index_map()
        self._check_sorted_in_range(self.dropped, self.dropped_name)
        self._check_batching()

    def _check_index_map(self) -> None:
        name, opcode = self.index_map_name, self.opcode
        vector_size = 1
        if self.index_vector_dim < self.indices.rank:
            vector_size = self.indices.dimensions[self.index_vector_dim]
        if not (vector_size < 0 or len(self.index_map) == vector_size):
            raise HloVerifyError(
                f"{opcode.capitalize()} op has {len(self.index_map)} elements in {name} and the "
                f"bound of dimension index_vector_dim={self.index_vector_dim} of "
                f"{self.indices_name} is {vector_size}. These two numbers must be equal."
            )
        mapping = " mapping" if opcode == "scatter" else ""
        for i, dimension in enumerate(self.index_map):
            if not (0 <= dimension < self.operand.rank):
                raise HloVerifyError(
                    f"Invalid {name}{mapping}; domain is [0, {self.operand.rank}), "
                    f"got: {i}->{dimension}."
                )
        _check_unique(self.index_map, f"Repeated dimensions not allowed in {name}")

    def _check_sorted_in_range(self, dimensions: _Dimensions, name: str) -> None:
        in_op = f"{name} in {self.opcode} op"
        if list(dimensions) != sorted(dimensions):
            raise HloVerifyError(f"{in_op} must be sorted; got: {dimensions}")
        for dimension in dimensions:
            if not (0 <= dimension < self.operand.rank):
                raise HloVerifyError(
                    f"Invalid {name} set in {self.opcode} op; valid range is "
                    f"[0, {self.operand.rank}), got: {dimension}."
                )
        _check_unique(dimensions, f"Repeated dimensions not allowed in {in_op}")

    def _check_batching(self) -> None:
        if len(self.operand_batching) != len(self.indices_batching):
            raise HloVerifyError(
                f"batching dimensions of operand and {self.indices_name} in {self.opcode} op must "
                f"be of the same size; got: {len(self.operand_batching)} and "
                f"{len(self.indices_batching)}."
            )
        self._check_sorted_in_range(self.operand_batching, "batching dims of the operand")
        # Vectors of one element need no dimension; XLA counts it all the same.
        rank = self.indices.rank + (self.index_vector_dim == self.indices.rank)
        for i, dimension in enumerate(self.indices_batching):
            if not (0 <= dimension < rank):
                raise HloVerifyError(
                    f"Invalid batching dims of {self.indices_name}; domain is "
                    f"[0, {rank}), got: {i}->{dimension}."
                )
        _check_unique(
            self.indices_batching,
            f"Repeated dimensions are not allowed in the batching dims of {self.indices_name}",
        )


def infer_gather(operation: Operation) -> Shape:
    """Batch dimensions of the indices around the window's, in the default layout."""
    operand, indices = operation.take_operands(2)
    expect_array(operand, "input operand of gather op")
    expect_array(indices, "gather indices operand of gather op")
    _check_indices(indices, "Gather", "start_indices", operation)
    indexing = _Indexing(
        *(operation, operand, indices),
        window="offset_dims",
        dropped="collapsed_slice_dims",
        index_map="start_index_map",
        operand_batching="operand_batching_dims",
        indices_batching="start_indices_batching_dims",
        indices_name="start_indices",
    )
    window, collapsed = indexing.window, indexing.dropped
    slice_sizes = operation.ints("slice_sizes")
    batch = indexing.batch_sizes()
    rank = len(batch) + len(window)
    _check_ascending(window, "Output window dimensions in gather op must", "be ascending")
    for i, dimension in enumerate(window):
        if not (0 <= dimension < rank):
            raise HloVerifyError(
                f"Offset dimension {i} in gather op is out of bounds; got {dimension}, but should "
                f"have been in [0, {rank})."
            )
    indexing.check()
    if len(slice_sizes) != operand.rank:
        raise HloVerifyError(
            "Gather op must have one slice size for every input dimension; got: "
            f"len(slice_sizes)={len(slice_sizes)}, input_shape={show(operand)}."
        )
    taken = indexing.window_operand_dimensions()
    if len(window) != indexing.window_rank():
        raise HloVerifyError(
            "All components of the offset index in a gather op must either be a offset dimension "
            f"or explicitly collapsed/batching; got len(slice_sizes)={len(slice_sizes)}, "
            f"offset_dims={window}, collapsed_slice_dims={collapsed}."
        )
    _check_slice_sizes(slice_sizes, operand, collapsed, indexing.operand_batching)
    window_sizes = [
        (slice_sizes[d], operand.dynamic[d] and slice_sizes[d] == operand.dimensions[d])
        for d in taken[: len(window)]
    ]
    return _interleave(operand.type_name, window, window_sizes, batch)


def _check_slice_sizes(
    slice_sizes: _Dimensions, operand: Shape, collapsed: _Dimensions, batching: _Dimensions
) -> None:
    """Raise HloVerifyError where a slice does not fit, or fills a dimension that is left out."""
    for i, size in enumerate(slice_sizes):
        bound = operand.dimensions[i]
        if not (size >= 0 and (size <= bound or bound < 0)):
            raise HloVerifyError(
                f"Slice size at index {i} in gather op is out of range, must be within "
                f"[0, {bound + 1}), got {size}."
            )
    for name, dimensions in (
        ("collapse slice dims", collapsed),
        ("have batching dims", batching),
    ):
        for position, d in enumerate(dimensions):
            if slice_sizes[d] > 1:
                raise HloVerifyError(
                    f"Gather op can only {name} with bound 1 or 0, but bound is {slice_sizes[d]} "
                    f"for index {d} at position {position}."
                )


def _interleave(
    element_type: str,
    window: _Dimensions,
    window_sizes: list[tuple[int, bool]],
    batch_sizes: list[tuple[int, bool]],
) -> Shape:
    places = dict(zip(window, window_sizes, strict=True))
    batch = iter(batch_sizes)
    rank = len(window_sizes) + len(batch_sizes)
    sizes = [places[d] if d in places else next(batch) for d in range(rank)]
    return array_shape(element_type, tuple(s for s, _ in sizes), tuple(d for _, d in sizes))


def infer_scatter(operation: Operation) -> Shape:
    """The operands' shapes, a tuple where there are several.

    The operands are n arrays, the indices, n updates.
    """
    count = len(operation.operands) // 2
    if not (len(operation.operands) % 2 == 1 and count > 0):
        raise HloVerifyError(
            f"scatter expects an odd number of operands, but has {len(operation.operands)} operands"
        )
    operands, indices = operation.operands[:count], operation.operands[count]
    updates = operation.operands[count + 1 :]
    for shape in operands:
        expect_array(shape, "operand of scatter op")
    expect_array(indices, "scatter indices operand of scatter op")
    for shape in updates:
        expect_array(shape, "updates operand of scatter op")
    _check_indices(indices, "Scatter", "scatter_indices", operation)
    (combiner,) = operation.take_callees(1)
    # The combiner sees elements of operands and updates; initial values are the operands'.
    check_reducer(combiner, [_scalar(shape) for shape in operands], updates)
    for operand, update in zip(operands, updates, strict=True):
        _check_scattered(operation, operand, indices, update)
    return operands[0] if count == 1 else tuple_shape(operands)


def _check_scattered(operation: Operation, operand: Shape, indices: Shape, updates: Shape) -> None:
    indexing = _Indexing(
        *(operation, operand, indices),
        window="update_window_dims",
        dropped="inserted_window_dims",
        index_map="scatter_dims_to_operand_dims",
        operand_batching="input_batching_dims",
        indices_batching="scatter_indices_batching_dims",
        indices_name="scatter_indices",
    )
    window = indexing.window
    if not same_kind(operand, updates):
        raise HloVerifyError(
            f"Scatter operand and updates differ in element type: {show(operand)} and "
            f"{show(updates)}."
        )
    batch = indexing.batch_sizes()
    rank = len(batch) + len(window)
    if updates.rank != rank:
        raise HloVerifyError(f"Updates tensor must be of rank {rank}; got {updates.rank}.")
    _check_ascending(window, "update_window_dims in scatter op must", "be sorted")
    for dimension in window:
        if not (0 <= dimension < rank):
            raise HloVerifyError(
                f"Invalid update_window_dims set in scatter op; valid range is [0, {rank}), "
                f"got: {dimension}."
            )
    indexing.check()
    taken = indexing.window_operand_dimensions()
    if len(window) != indexing.window_rank():
        raise HloVerifyError(
            f"Scatter op has window of size {len(window)}; doesn't match operand of rank "
            f"{operand.rank}."
        )
    for place, d in zip(window, taken, strict=False):
        size, bound = updates.dimensions[place], operand.dimensions[d]
        if size > bound:  # XLA counts an unbounded dimension as the smallest number
            raise HloVerifyError(
                "Bounds of the window dimensions of updates must not exceed the bounds of the "
                "corresponding dimensions of operand. For dimension "
                f"{place}, updates bound is {size}, operand bound is {bound}."
            )
    others = [d for d in range(rank) if d not in window]
    for place, (bound, _) in zip(others, batch, strict=True):
        size = updates.dimensions[place]
        if not (size == bound or min(size, bound) < 0):
            raise HloVerifyError(
                "Bounds of the scatter dimensions of updates must be same as the bounds of the "
                "corresponding dimensions of scatter indices. For scatter dimension "
                f"{place}, updates bound is {size}, scatter_indices bound is {bound}."
            )


def _scalar(shape: Shape) -> Shape:
    return array_shape(shape.type_name)


def _check_indices(indices: Shape, title: str, name: str, operation: Operation) -> None:
    assert indices.element_type is not None
    if not indices.element_type.is_integral:
        raise HloVerifyError(
            f"{title} indices parameter must be an integral tensor; got {show(indices)}."
        )
    vector = operation.integer("index_vector_dim")
    if not (0 <= vector <= indices.rank):
        raise HloVerifyError(
            f"{title} index leaf dimension must be within [0, rank({name}) + 1). rank({name}) is "
            f"{indices.rank} and {title.lower()} index leaf dimension is {vector}."
        )


def _check_ascending(dimensions: _Dimensions, beginning: str, order: str) -> None:
    if list(dimensions) != sorted(dimensions):
        raise HloVerifyError(f"{beginning} {order}; got: {', '.join(map(str, dimensions))}.")
    _check_unique(dimensions, f"{beginning} not repeat")


def _check_unique(dimensions: _Dimensions, message: str) -> None:
    if len(set(dimensions)) != len(dimensions):
        raise HloVerifyError(f"{message}; got: {', '.join(map(str, dimensions))}.")
