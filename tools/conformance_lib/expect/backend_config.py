"""Expectations about the backend_config of instructions, and their original values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from conformance_lib.errors import RecordError
from conformance_lib.expectations import More, compare, expectation
from conformance_lib.forms import (
    ANY,
    TEXT,
    keys,
    mapping,
)
from conformance_lib.patterns import PATTERN, mismatch, shape_is
from conformance_lib.scene import Scene
from conformance_lib.selector_syntax import SELECTOR
from conformance_lib.selectors import select
from hloopt.ir import Instruction


@expectation("backend_config_field", mapping(SELECTOR, mapping(TEXT, ANY)))
def backend_config_field(
    scene: Scene, expected: dict[str, dict[str, Any]], more: More
) -> Iterator[str]:
    for selector, fields in expected.items():
        for instruction in select(scene, selector):
            for path, wanted in fields.items():
                found = field_at(config_of(instruction), path)
                yield from compare(f"{path} of {selector}", found, as_json(wanted))


@expectation("backend_config_equals_textproto", mapping(SELECTOR, TEXT))
def backend_config_equals_textproto(
    scene: Scene, expected: dict[str, str], more: More
) -> Iterator[str]:
    for selector, text in expected.items():
        for instruction in select(scene, selector):
            # A repeated field that is empty is not there in the text form.
            found = {key: value for key, value in config_of(instruction).items() if value != []}
            yield from compare(f"backend_config of {selector}", found, _message(text))


def config_of(instruction: Instruction) -> dict[str, Any]:
    """The backend_config of an instruction; empty where it has none."""
    config: dict[str, Any] = json.loads(instruction.attributes.get("backend_config", "{}"))
    return config


def field_at(config: Any, path: str) -> Any:
    """The value at a dotted path; None where it is absent."""
    for name in path.split("."):
        config = config.get(name) if isinstance(config, dict) else None
    return config


def as_json(value: Any) -> Any:
    """A value as protocol buffers print it in JSON: integers of 64 bits are strings."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


_REPEATED = frozenset(("dynamic_variables",))
_TOKEN = re.compile(r"(\w+)\s*(?:\{|:\s*(-?\d+))|\}")


def _message(text: str) -> dict[str, Any]:
    """A protocol buffer in text form, of integers and messages, as its JSON.

    Raises RecordError for anything else.
    """
    stack: list[dict[str, Any]] = [{}]
    position = 0
    text = text.strip()
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            raise RecordError(f"cannot read the message at '{text[position:]}'")
        name, number = token[1], token[2]
        if name is None:
            stack.pop()
        elif number is not None:
            stack[-1][name] = number
        else:
            inner: dict[str, Any] = {}
            if name in _REPEATED:
                stack[-1].setdefault(name, []).append(inner)
            else:
                stack[-1][name] = inner
            stack.append(inner)
        position = token.end()
        position += len(text[position:]) - len(text[position:].lstrip())
    return stack[0]


@expectation("original_value", mapping(SELECTOR, TEXT))
def original_value(scene: Scene, expected: dict[str, str], more: More) -> Iterator[str]:
    for selector, text in expected.items():
        for instruction in select(scene, selector):
            found = instruction.attributes.get("origin", "{}")[1:-1]
            same = re.sub(r"\s", "", found) == re.sub(r"\s", "", text)
            if not same:
                yield f"original value of {selector}: expected {text}, found {found}"


@expectation(
    "new_while",
    keys({}, {"shape": TEXT, "init": PATTERN, "body_root": PATTERN, "cond_root": PATTERN}),
)
def new_while(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    """The while of ENTRY that is not the old one, called "while", unless that was changed."""
    whiles = [i for i in scene.module.entry.instructions if i.opcode == "while"]
    found = [i for i in whiles if i.name != "while"] or whiles
    yield from compare("number of new whiles", len(found), 1)
    for loop in found:
        if "shape" in expected and not shape_is(loop.shape, expected["shape"]):
            yield f"shape of the new while: expected {expected['shape']}, found {loop.shape.text}"
        places = (loop.operands[0], loop.called[0].root, loop.called[1].root)
        for key, place in zip(("init", "body_root", "cond_root"), places, strict=True):
            reason = mismatch(scene, expected[key], place) if key in expected else None
            if reason is not None:
                yield f"{key} of the new while: {reason}"
