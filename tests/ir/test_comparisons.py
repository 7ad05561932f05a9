"""The order of a compare, as XLA 0.10 and as XLA 0.12 writes it."""

from __future__ import annotations

import pytest

from hloopt.analysis.fingerprint import LEFT_OUT, Fingerprints
from hloopt.ir.attributes.explicit import is_total_order
from hloopt.proto import decode, encode
from hloopt.text import parse_module, print_module
from hloopt.verifier import ANY_TARGET, verify_module


def text(element: str, attribute: str) -> str:
    return f"""HloModule m

ENTRY e {{
  p = {element}[4]{{0}} parameter(0)
  ROOT c = pred[4]{{0}} compare(p, p), direction=LT{attribute}
}}
"""


def fingerprint(element: str, attribute: str) -> str:
    return Fingerprints(parse_module(text(element, attribute)), LEFT_OUT).without()


@pytest.mark.parametrize(
    ("element", "attribute", "is_total"),
    [
        ("f32", "", False),
        ("f32", ", type=TOTALORDER", True),
        ("f32", ", order=TOTAL", True),
        ("f32", ", order=PARTIAL", False),
        ("s32", ", order=TOTAL", False),  # as integers are ordered anyway
    ],
)
def test_both_attributes_say_the_order(element: str, attribute: str, is_total: bool) -> None:
    module = parse_module(text(element, attribute))
    assert list(verify_module(module, ANY_TARGET)) == []
    assert is_total_order(module.entry.root) is is_total
    assert f"direction=LT{attribute}\n" in print_module(module)
    same = ", type=TOTALORDER" if is_total else ""
    assert fingerprint(element, attribute) == fingerprint(element, same)


def test_a_proto_keeps_the_order() -> None:
    module = decode(encode(parse_module(text("f32", ", order=TOTAL"))))
    assert module.entry.root.attributes["type"] == "TOTALORDER"
    module = decode(encode(parse_module(text("s32", ", order=TOTAL"))))
    assert "type" not in module.entry.root.attributes


def test_other_words_are_refused() -> None:
    (error,) = verify_module(parse_module(text("f32", ", order=SOME")), ANY_TARGET)
    assert "order" in error.message
