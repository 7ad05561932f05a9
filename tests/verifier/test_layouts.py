"""Rules of the verifier about layouts, memory spaces and the counts in the header."""

from __future__ import annotations

import pytest

from hloopt.ir.shapes.layout import Layout
from hloopt.ir.shapes.shape import array_shape
from hloopt.text import parse_module
from hloopt.verifier import ANY_TARGET, VerifierOptions, verify_module


def problems(
    body: str, header: str = "", options: VerifierOptions | None = None, callees: str = ""
) -> list[str]:
    """Problems that the verifier finds in an entry computation with these lines."""
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


LAYOUTS = VerifierOptions(layout_sensitive=True)
CALLEES = """
neg { a = f32[4,2]{1,0} parameter(0)  ROOT n = f32[4,2]{1,0} negate(a) }
tup { a = f32[4,2]{1,0} parameter(0)  ROOT n = (f32[4,2]{1,0}) tuple(a) }
yes { a = f32[4,2]{1,0} parameter(0)  ROOT n = pred[] constant(false) }
"""
FROM_HOST = "h = f32[4,2]{1,0:T(2,128)S(5)} parameter(5)\n  "


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("x = f32[8] bitcast(q)", "x = f32[7] bitcast(q)", "output (28) and operand (32)"),
        ("x = bf16[16] bitcast(q)", "x = bf16[8] bitcast(q)", "output (16) and operand (32)"),
        ("x = s4[64]{0:E(4)} bitcast(q)", "x = s4[64] bitcast(q)", "output (64)"),
        ("x = f32[<=8] bitcast(q)", "x = f32[0] bitcast(q)", "output (0) and operand (32)"),
        ("x = f32[8]{0:S(1)} bitcast(p)", "x = f32[8]{0:S(5)} bitcast(p)", "memory spaces"),
        ("x = f32[8] bitcast(p)", "x = (f32[8]) bitcast(p)", "cannot have tuples"),
        (
            FROM_HOST + "x = f32[4,2]{1,0:T(2,128)} copy(h)",
            FROM_HOST + "x = f32[4,2]{1,0:T(8,128)} copy(h)",
            "Expected instruction to have shape equal to f32[4,2]{1,0:T(2,128)S(5)}",
        ),
        (
            FROM_HOST + "x = f32[4,2]{0,1:S(5)} copy(h)",
            FROM_HOST + "x = f32[4,2]{0,1:T(2,128)S(1)} copy(h)",
            "Expected instruction to have shape equal to",
        ),
        (
            "x = (f32[4,2]{1,0:S(1)}, f32[4,2]{1,0}, u32[]) copy-start(q)\n"
            "  d = f32[4,2]{1,0:S(1)} copy-done(x)",
            "x = (f32[4,2]{0,1}, f32[4,2]{1,0}, u32[]) copy-start(q)\n"
            "  d = f32[4,2]{0,1} copy-done(x)",
            "%x: Expected instruction to have shape equal to",
        ),
        (
            "x = (f32[4,2]{1,0:S(1)}, f32[4,2]{1,0}, u32[]) copy-start(q)\n"
            "  d = f32[4,2]{1,0:S(1)} copy-done(x)",
            "x = (f32[4,2]{1,0:S(1)}, f32[4,2]{1,0}, u32[]) copy-start(q)\n"
            "  d = f32[4,2]{1,0} copy-done(x)",
            "%d: Expected instruction to have shape equal to f32[4,2]{1,0:S(1)}",
        ),
        (
            "x = (f32[4,2]{1,0}, f32[4,2]{1,0}, u32[]) copy-start(q)\n"
            "  d = f32[4,2]{1,0} copy-done(x)",
            "x = (f32[4,2]{1,0:T(2,128)}, f32[4,2]{1,0}, u32[]) copy-start(q)\n"
            "  d = f32[4,2]{1,0:T(2,128)} copy-done(x)",
            "Source and destination buffers",
        ),
        (
            "x = ((f32[4,2]{1,0}), f32[4,2]{1,0}) async-start(q), calls=neg\n"
            "  d = f32[4,2]{1,0} async-done(x)",
            "x = ((f32[4,2]{1,0}), f32[4,2]{0,1}) async-start(q), calls=neg\n"
            "  d = f32[4,2]{1,0} async-done(x)",
            "%x: Expected instruction to have shape equal to f32[4,2]{1,0}",
        ),
        (
            "x = ((f32[4,2]{1,0}), (), u32[]) async-start(q), calls=neg\n"
            "  d = f32[4,2]{1,0} async-done(x)",
            "x = ((f32[4,2]{1,0:S(1)}), (), u32[]) async-start(q), calls=neg\n"
            "  d = f32[4,2]{1,0} async-done(x)",
            "%x: Operand shape f32[4,2]{1,0:S(1)} does not match parameter %a",
        ),
        (
            "x = ((f32[4,2]{1,0}), f32[4,2]{1,0}) async-start(q), calls=neg\n"
            "  d = f32[4,2]{1,0} async-done(x)",
            "x = ((f32[4,2]{1,0}), f32[4,2]{1,0}) async-start(q), calls=neg\n"
            "  d = f32[4,2]{1,0:S(1)} async-done(x)",
            "%d: Expected instruction to have shape equal to f32[4,2]{1,0}",
        ),
        (
            "x = f32[4,2]{1,0} fusion(q), kind=kLoop, calls=neg",
            "x = f32[4,2]{0,1} fusion(q), kind=kLoop, calls=neg",
            "Expected instruction to have shape equal to",
        ),
        (
            "x = f32[4,2]{1,0} fusion(q), kind=kLoop, calls=neg",
            "x = f32[4,2]{1,0} fusion(t), kind=kLoop, calls=neg",
            "Operand shape f32[4,2]{0,1} does not match parameter %a",
        ),
        (
            "x = f32[4,2]{1,0} call(q), to_apply=neg",
            "x = f32[4,2]{1,0} call(t), to_apply=neg",
            "Operand shape f32[4,2]{0,1} does not match parameter %a",
        ),
        (
            "x = f32[4,2]{1,0} conditional(b, q, q), true_computation=neg, false_computation=neg",
            "x = f32[4,2]{1,0} conditional(b, q, t), true_computation=neg, false_computation=neg",
            "Operand shape f32[4,2]{0,1} does not match parameter %a",
        ),
        (
            "x = f32[4,2]{1,0} while(q), body=neg, condition=yes",
            "x = f32[4,2]{0,1} while(t), body=neg, condition=yes",
            "does not match parameter",
        ),
        (
            "x = (f32[4,2]{1,0}) call(q), to_apply=tup",
            "x = (f32[4,2]{1,0:S(1)}) call(q), to_apply=tup",
            "Expected instruction to have shape equal to (f32[4,2]{1,0})",
        ),
        (
            "x = f32[4,2]{1,0} opt-barrier(q)",
            "x = f32[4,2]{0,1} opt-barrier(q)",
            "Expected instruction to have shape equal to f32[4,2]{1,0}",
        ),
        (
            "i = s32[] constant(0)\n  x = f32[4,2]{1,0} dynamic-update-slice(q, t, i, i)",
            "i = s32[] constant(0)\n  x = f32[4,2]{1,0:S(1)} dynamic-update-slice(q, t, i, i)",
            "Expected instruction to have shape equal to f32[4,2]{1,0}",
        ),
        (
            "x = token[] outfeed(q, k), outfeed_shape=f32[4,2]{1,0}",
            "x = token[] outfeed(q, k), outfeed_shape=f32[4,2]{0,1}",
            "Expected outfeed shape to be equal to operand's shape",
        ),
    ],
)
def test_layouts_are_passed_on(right: str, wrong: str, message: str) -> None:
    found = problems(wrong, options=LAYOUTS, callees=CALLEES)
    assert any(message in problem for problem in found), found
    assert problems(wrong, callees=CALLEES) == []
    assert problems(right, options=LAYOUTS, callees=CALLEES) == []


@pytest.mark.parametrize(
    ("shape", "fits_must", "fits_may"),
    [
        ("f32[8]{0}", True, True),
        ("f32[8]{0:S(1)}", False, True),
        ("f32[8]{0:T(128)}", False, True),
        ("s32[8]{0}", False, True),
        ("f32[4]{0}", False, False),
    ],
)
def test_an_output_in_a_parameters_buffer_fits(shape: str, fits_must: bool, fits_may: bool) -> None:
    line = f'ROOT x = {shape} custom-call(p), custom_call_target="f"'
    header = "input_output_alias={{ {{}}: (0, {{}}, {}) }}"
    assert (problems(line, header.format("must-alias")) == []) is fits_must
    assert (problems(line, header.format("must-alias"), LAYOUTS) == []) is fits_must
    assert (problems(line, header.format("may-alias"), LAYOUTS) == []) is fits_may
    assert problems(line, header.format("may-alias")) == []
