"""The text of `entry_computation_layout`: `{(shape, …)->shape}`."""

from __future__ import annotations

from collections.abc import Sequence

from hloopt.ir.attributes.values.tokens import malformed
from hloopt.ir.shapes.shape import Shape, format_shape
from hloopt.ir.shapes.shape_parser import scan_shape
from hloopt.ir.trivia import skip_trivia

_LAYOUT = "an entry layout {(shape, …)->shape}"


def parse_entry_layout(text: str) -> tuple[list[Shape], Shape]:
    """The shapes of parameters and result in `{(shape, …)->shape}`."""
    position = _after(text, 0, "{", text)
    position = _after(text, position, "(", text)
    parameters: list[Shape] = []
    while not text.startswith(")", position):
        if parameters:
            position = _after(text, position, ",", text)
        shape, position = scan_shape(text, position)
        parameters.append(shape)
        position = skip_trivia(text, position)
    position = _after(text, position, ")", text)
    position = _after(text, position, "->", text)
    result, position = scan_shape(text, position)
    if _after(text, skip_trivia(text, position), "}", text) != len(text):
        raise malformed(_LAYOUT, text)
    return parameters, result


def _after(text: str, position: int, token: str, whole: str) -> int:
    if not text.startswith(token, position):
        raise malformed(_LAYOUT, whole)
    return skip_trivia(text, position + len(token))


def format_entry_layout(parameters: Sequence[Shape], result: Shape) -> str:
    """The value of `entry_computation_layout` for these shapes."""
    texts = [
        f"/*index={i}*/{format_shape(shape)}" if i and i % 5 == 0 else format_shape(shape)
        for i, shape in enumerate(parameters)
    ]
    return f"{{({', '.join(texts)})->{format_shape(result)}}}"
