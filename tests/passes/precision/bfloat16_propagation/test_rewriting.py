"""What stays as it is, and what is tidied up."""

from __future__ import annotations

import pytest
from tests.passes.precision.rounded import MATRIX_UNIT, line, run_rounded, types

from hloopt.ir import Opcode
from hloopt.pass_framework.applications import Applications
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module

NAME = "bfloat16-propagation"
DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def product(lines: str, result: str = "d") -> str:
    return f"""HloModule m
    ENTRY e {{ a = f32[4,4] parameter(0)
      i = s32[] parameter(1)
      {lines}
      d = f32[4,4] dot(x, x), {DOT}
      ROOT out = f32[4,4] add(d, {result}) }}"""


def run(text: str, changes: bool) -> list[str]:
    """The texts of the instructions of a program that cannot be run."""
    module = parse_module(text)
    assert create_pass(NAME, {"float_support": MATRIX_UNIT}).run(module, PassContext()) == changes
    return types(module, "x")


def test_custom_calls_stay_but_for_new_buffers() -> None:
    call = 'x = f32[4,4] custom-call(), custom_call_target="{}"'
    assert run(product(call.format("something")), changes=False) == ["f32"]
    assert run(product(call.format("AllocateBuffer")), changes=True) == ["bf16"]


@pytest.mark.parametrize(
    "fixed",
    [
        "u = s32[4,4] bitcast-convert(a)\n x = f32[4,4] bitcast-convert(u)",
        "u = s32[4,4] convert(a)\n x = f32[4,4] bitcast(u)",
        "x = f32[4,4] all-reduce(a), channel_id=1, replica_groups={}, to_apply=s",
    ],
)
def test_what_reads_bits_or_has_effects_stays(fixed: str) -> None:
    text = product(fixed).replace(
        "ENTRY",
        "s { p = f32[] parameter(0) q = f32[] parameter(1) ROOT r = f32[] add(p, q) } ENTRY",
    )
    assert run(text, changes=False) == ["f32"]


def test_what_is_read_as_bits_stays() -> None:
    lines = "x = f32[4,4] negate(a)\n u = s32[4,4] bitcast(x)\n v = f32[4,4] convert(u)"
    assert run(product(lines, "v"), changes=False) == ["f32"]


def test_what_comes_from_or_lies_in_the_memory_of_the_host_stays() -> None:
    host = "f32[4,4]{1,0:S(5)}"
    for fetched in (
        f"h = {host} copy(a)\n x = f32[4,4] copy(h)",
        f"h = {host} copy(a)\n x = f32[4,4] dynamic-slice(h, i, i), dynamic_slice_sizes={{4,4}}",
        f"h = f32[4,4] negate(a)\n x = {host} negate(h)",
    ):
        assert run(product(fetched), changes=False) == ["f32"]


def test_what_is_written_over_has_the_type_of_the_result() -> None:
    update = "x = f32[4,4] dynamic-update-slice(n, k, i, i)"
    lines = f"n = f32[4,4] negate(a)\n k = f32[2,2] slice(a), slice={{[0:2], [0:2]}}\n {update}"
    module = run_rounded(NAME, product(lines))
    assert types(module, "x", "n", "k") == ["bf16"] * 3
    run_rounded(NAME, product(lines, "n"), changes=False)
    # A scatter combines elements, so that what it reads is not rounded with its result.
    combined = """n = f32[4] constant({1, 2, 3, 4})
      j = s32[1] constant({2})
      k = f32[1] constant({7})
      y = f32[4] scatter(n, j, k), update_window_dims={}, inserted_window_dims={0},
        scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=s
      x = f32[4,4] broadcast(y), dimensions={0}"""
    text = product(combined).replace(
        "ENTRY", "s { p = f32[] parameter(0) ROOT q = f32[] parameter(1) } ENTRY"
    )
    module = run_rounded(NAME, text)
    assert types(module, "x", "y", "n", "k") == ["bf16", "f32", "f32", "f32"]


def test_what_has_one_type_gets_converts() -> None:
    module = run_rounded(NAME, product("x = f32[4,4] copy(a)"))
    assert line(module, "x") == "bf16[4,4] copy(convert)"
    assert line(module, "convert") == "bf16[4,4] convert(a)"
    module = run_rounded(NAME, product("x = f32[4,4] transpose(a), dimensions={1,0}"))
    assert line(module, "x") == "bf16[4,4] transpose(a), dimensions={1,0}"


def test_converts_from_a_type_to_itself_go() -> None:
    text = product("n = f32[4,4] negate(a)\n x = f32[4,4] convert(n)")
    module = run_rounded(NAME, text)
    assert types(module, "n") == ["bf16"]
    assert Opcode.CONVERT not in [i.opcode for i in module.instructions()]


def test_tuples_that_are_taken_apart_go() -> None:
    lines = """n = f32[4,4] negate(a)
      t = (f32[4,4], s32[]) tuple(n, i)
      x = f32[4,4] get-tuple-element(t), index=0"""
    module = run_rounded(NAME, product(lines))
    assert [i.name for i in module.entry.instructions] == ["a", "i", "n", "d", "out"]


def test_dead_code_goes_with_a_change() -> None:
    lines = "x = f32[4,4] negate(a)\n unread = s32[] add(i, i)"
    module = run_rounded(NAME, product(lines))
    assert "unread" not in [i.name for i in module.instructions()]
    run_rounded(NAME, product(lines, "x"), changes=False)


def test_the_result_and_the_arguments_keep_their_types() -> None:
    text = """HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }
    ENTRY e { a = f32[4,4] parameter(0)
      b = f32[4,4] parameter(1)
      n = f32[4,4] negate(b)
      k = bf16[4,4] convert(n)
      ROOT out = (f32[4,4], bf16[4,4], f32[4,4]) tuple(a, k, n) }"""
    module = run_rounded(NAME, text, changes=False)
    assert types(module, "out", "a", "b") == ["(f32, bf16, f32)", "f32", "f32"]


def test_a_limit_stops_before_the_change() -> None:
    text = product("x = f32[4,4] negate(a)")
    for limit, changed in ((0, False), (1, True)):
        module = parse_module(text)
        context = PassContext(NAME, applications=Applications(limit))
        done = create_pass(NAME, {"float_support": MATRIX_UNIT}).run(module, context)
        assert done == changed
        assert (print_module(module) != text) == changed
    last = context.applications.last
    assert last is not None
    assert last.what == "it and all that goes with it become bf16"


def test_remarks_name_what_changed_and_what_did_not() -> None:
    text = product("x = f32[4,4] negate(a)\n n = f32[4,4] sine(a)\n k = bf16[4,4] convert(n)", "n")
    text = text.replace("ROOT out = f32[4,4] add(d, n)", "o = f32[4,4] add(d, n)\n"
                        "ROOT out = (f32[4,4], bf16[4,4]) tuple(o, k)")  # fmt: skip
    context = PassContext(NAME)
    create_pass(NAME, {"float_support": MATRIX_UNIT}).run(parse_module(text), context)
    assert [(r.kind, r.instruction, r.reason) for r in context.remarks] == [
        ("missed", "n", "stays f32: %o reads all of it"),
        ("applied", "x", "gives bf16 now"),
    ]
    assert context.statistics == {"instructions changed": 1}
