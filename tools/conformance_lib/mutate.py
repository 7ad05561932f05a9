"""Edits of a parsed module (`mutate`), for states that no text can express."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from conformance_lib.errors import RecordError
from conformance_lib.forms import unknown_words
from conformance_lib.scene import Scene
from conformance_lib.selectors import select_one
from hloopt.ir import Instruction, parse_shape
from hloopt.ir.attributes.values import parse_window


def mutate(scene: Scene, edits: Iterable[Mapping[str, Any]]) -> None:
    """Make the edits, in order. Raises RecordError for an edit this module does not know, and
    what the library raises where it refuses one."""
    for edit in edits:
        ((name, arguments),) = edit.items()
        if reason := unknown_words("edit", [name], EDITS):
            raise RecordError(reason)
        EDITS[name](scene, arguments)


def _set_shape(scene: Scene, arguments: list[Any]) -> None:
    selector, shape = arguments
    select_one(scene, selector).set_shape(parse_shape(shape))


def _set_attribute(scene: Scene, arguments: list[Any]) -> None:
    selector, key, value = arguments
    instruction = select_one(scene, selector)
    name, _, path = key.partition(".")
    if name == "layout":
        _set_layout(instruction, path, value)
        return
    if name == "padding":
        text = "x".join("_".join(map(str, dimension)) for dimension in value)
    elif name == "output_to_operand_aliasing":
        text = _braces(
            f"{_braces(out)}: ({number}, {_braces(index)})" for out, (number, index) in value
        )
    elif name == "window":
        text = _window(instruction, path, value)
    else:
        raise RecordError(f"no way is known to set the attribute '{key}'")
    instruction.set_attribute(name, text)


def _set_layout(instruction: Instruction, path: str, value: list[int]) -> None:
    if path != "minor_to_major":
        raise RecordError(f"no way is known to set '{path}' of a layout")
    shape = instruction.shape
    layout = shape.layout._replace(minor_to_major=tuple(value))
    instruction.set_shape(shape.with_layout(layout))


_DILATIONS = {"window_dilation": "rhs_dilate", "base_dilation": "lhs_dilate"}


def _window(instruction: Instruction, path: str, value: int) -> str:
    """The window's text with one number of one dimension changed."""
    _, number, field = path.split(".")
    if reason := unknown_words("number of a window dimension", [field], _DILATIONS):
        raise RecordError(reason)
    part = _DILATIONS[field]
    text = instruction.attributes["window"]
    dilations = [getattr(dimension, part) for dimension in parse_window(text).dimensions]
    dilations[int(number)] = value
    others = [p for p in text.strip("{}").split() if not p.startswith(f"{part}=")]
    numbers = "x".join(map(str, dilations))
    return f"{{{' '.join(others)} {part}={numbers}}}"


def _replace_operand(scene: Scene, arguments: list[Any]) -> None:
    selector, number, new = arguments
    select_one(scene, selector).replace_operand(number, select_one(scene, new))


def _remove(scene: Scene, selector: str) -> None:
    instruction = select_one(scene, selector)
    instruction.parent.remove(instruction)


def _braces(items: Iterable[object]) -> str:
    return "{" + ", ".join(map(str, items)) + "}"


PARTS = ("padding", "output_to_operand_aliasing", "layout", "minor_to_major", *_DILATIONS)
"""The names that `set_attr` can set beside attributes."""

EDITS: Mapping[str, Callable[[Scene, Any], None]] = {
    "set_shape": _set_shape,
    "set_attr": _set_attribute,
    "replace_operand": _replace_operand,
    "remove": _remove,
}
