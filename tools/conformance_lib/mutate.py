"""Edits of a parsed module (`mutate`), for states that no text can express."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from conformance_lib.errors import RecordError
from conformance_lib.scene import Scene
from conformance_lib.selectors import select_one
from hloopt.ir import Instruction, parse_shape


def mutate(scene: Scene, edits: Iterable[Mapping[str, Any]]) -> None:
    """Make the edits, in order. Raises RecordError for an edit this module does not know, and
    what the library raises where it refuses one."""
    for edit in edits:
        ((name, arguments),) = edit.items()
        if name not in _EDITS:
            raise RecordError(f"unknown edit: {name}")
        _EDITS[name](scene, arguments)


def _set_shape(scene: Scene, arguments: list[Any]) -> None:
    selector, shape = arguments
    select_one(scene, selector).set_shape(parse_shape(shape))


def _set_attribute(scene: Scene, arguments: list[Any]) -> None:
    selector, key, value = arguments
    instruction = select_one(scene, selector)
    name, _, path = key.partition(".")
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


def _window(instruction: Instruction, path: str, value: int) -> str:
    """The window's text with one number of one dimension changed."""
    _, number, field = path.split(".")
    if field != "window_dilation":
        raise RecordError(f"no way is known to set '{field}' of a window")
    window = instruction.attributes["window"]
    rank = window[window.index("size=") :].split()[0].rstrip("}").count("x") + 1
    dilations = ["1"] * rank
    dilations[int(number)] = str(value)
    return f"{window.rstrip('}')} rhs_dilate={'x'.join(dilations)}}}"


def _replace_operand(scene: Scene, arguments: list[Any]) -> None:
    selector, number, new = arguments
    select_one(scene, selector).replace_operand(number, select_one(scene, new))


def _remove(scene: Scene, selector: str) -> None:
    instruction = select_one(scene, selector)
    instruction.parent.remove(instruction)


def _braces(items: Iterable[object]) -> str:
    return "{" + ", ".join(map(str, items)) + "}"


_EDITS: Mapping[str, Callable[[Scene, Any], None]] = {
    "set_shape": _set_shape,
    "set_attr": _set_attribute,
    "replace_operand": _replace_operand,
    "remove": _remove,
}
