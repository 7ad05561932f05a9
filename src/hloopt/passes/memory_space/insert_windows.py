"""Put windows into the module: what loads them, and fusions that take them."""

from __future__ import annotations

from collections.abc import Iterable

from hloopt.ir import Instruction, Opcode
from hloopt.ir.clone import clone_computation
from hloopt.ir.shapes.shape import array_shape, tuple_shape
from hloopt.memory_space.allocation.windows import Window
from hloopt.memory_space.heap.chunks import Chunk

_TOKENS = array_shape("s32", (2,))


def insert_windows(windows: Iterable[Window]) -> dict[Instruction, Chunk]:
    """Make a WindowPrefetch for each window; these with their chunks. O(windows + operands)."""
    return {_insert(window): window.chunk for window in windows}


def _insert(window: Window) -> Instruction:
    """A custom call that loads a window, both of whose results become operands of the fusion."""
    fusion, number = window.fusion, window.operand
    shape = tuple_shape((array_shape("u8", (window.chunk.size,)), _TOKENS))
    count = len(fusion.operands)
    call = fusion.parent.add(
        Opcode.CUSTOM_CALL,
        shape,
        [fusion.operands[number]],
        name="window-prefetch",
        attributes={
            "custom_call_target": '"WindowPrefetch"',
            "backend_config": f'{{"parameter_index":"{count}","buffer_index":"{number}"}}',
        },
    )
    results = [
        fusion.parent.add(Opcode.GET_TUPLE_ELEMENT, part, [call], attributes={"index": str(index)})
        for index, part in enumerate(shape.elements)
    ]
    body = fusion.called[0]
    if len(body.callers) > 1:
        body = clone_computation(body)[0]
        fusion.set_called((body,))
    for index, part in enumerate(shape.elements):
        body.add(Opcode.PARAMETER, part, payload=str(count + index))
    fusion.set_operands([*fusion.operands, *results])
    return call
