"""What the verifier says about layouts, memory spaces and the counts in the header."""

from __future__ import annotations

import pytest

from hloopt.ir.shape import Layout, array_shape
from hloopt.text import parse_module
from hloopt.verifier import ANY_TARGET, VerifierOptions, verify_module


def problems(
    body: str, header: str = "", options: VerifierOptions | None = None, callees: str = ""
) -> list[str]:
    """What the verifier says about an entry computation with these lines."""
    text = f"""HloModule m{header and ", " + header}
{callees}
ENTRY e {{
  p = f32[8]{{0}} parameter(0)
  q = f32[4,2]{{1,0}} parameter(1)
  t = f32[4,2]{{0,1}} parameter(2)
  k = token[] parameter(3)
  b = pred[] parameter(4)
  {body}
}}
"""
    return [error.message for error in verify_module(parse_module(text), options)]


@pytest.mark.parametrize(
    ("shape", "what"),
    [
        ("f32[8]{7}", "out-of-bounds value: {7}; shape: f32[8]"),
        ("f32[8]{2147483647}", "out-of-bounds"),
        ("f32[8,1]{2,0}", "out-of-bounds value: {2,0}"),
        ("f32[8,1]{0,0}", "duplicate value: {0,0}"),
        ("f32[8,1]{1,1:T(2,128)}", "duplicate value: {1,1}"),
        ("(f32[8]{0}, (f32[8]{0}, f32[8]{1}))", "out-of-bounds value: {1}"),
        ("f32[0]{1}", "out-of-bounds"),
        ("f32[<=8]{1}", "out-of-bounds"),
    ],
)
@pytest.mark.parametrize("options", [VerifierOptions(), ANY_TARGET])
def test_a_layout_lists_each_dimension_once(
    shape: str, what: str, options: VerifierOptions
) -> None:
    line = 'x = SHAPE custom-call(p), custom_call_target="f"'
    (message,) = problems(line.replace("SHAPE", shape), options=options)
    assert message.startswith("%x: layout minor_to_major field has ")
    assert what in message
    for fine in ("f32[8]{0}", "f32[8,1]{0,1}", "f32[]", "f32[]{:T(128)}", "()", "(f32[0,3]{0,1})"):
        assert problems(line.replace("SHAPE", fine), options=options) == []


def test_a_wrong_layout_is_found_wherever_it_stands() -> None:
    for line in (
        "x = f32[8]{3} parameter(5)",
        "x = f32[8]{3} negate(p)",
        "x = f32[2]{3} constant({1, 2})",
        "x = f32[8]{3} reshape(p)",
        "t1 = (f32[8]{0}) tuple(p)\n  x = f32[8]{3} get-tuple-element(t1), index=0",
        "x = f32[4,2]{2,1} copy(q)",
        "x = (f32[8]{3}, f32[8]{3}, u32[]) copy-start(p)\n  d = f32[8]{0} copy-done(x)",
    ):
        for _ in range(2):  # a shape seen before is not taken for a valid one
            assert any("%x: layout minor_to_major" in problem for problem in problems(line)), line
    (message,) = problems(
        "n = f32[8] negate(p)",
        "entry_computation_layout={(f32[8]{1}, f32[4,2], f32[4,2]{0,1}, token[], pred[])->f32[8]}",
    )
    assert message.startswith("layout minor_to_major field has out-of-bounds value: {1}")


def test_a_layout_made_by_a_pass_is_looked_at_too() -> None:
    module = parse_module("ENTRY e { p = f32[8] parameter(0)  ROOT n = f32[8] negate(p) }")
    module.entry.root.set_shape(array_shape("f32", (8,), (), Layout((0, 1))))
    (error,) = verify_module(module)
    assert "out-of-bounds value: {0,1}" in error.message


@pytest.mark.parametrize(("name", "least"), [("num_partitions", 1), ("replica_count", 0)])
def test_a_module_runs_on_a_device_at_least(name: str, least: int) -> None:
    (message,) = problems("n = f32[8] negate(p)", f"{name}={least - 1}")
    assert message == f"{name}={least - 1}: a module runs on one device at least"
    assert problems("n = f32[8] negate(p)", f"{name}={least}") == []
    assert problems("n = f32[8] negate(p)", f"{name}=2") == []


def test_no_replicas_are_a_number_that_is_not_known() -> None:
    module = parse_module("HloModule m, replica_count=0\nENTRY e { ROOT p = f32[8] parameter(0) }")
    assert verify_module(module) == []
    assert module.replica_count == 1
