"""Stacks that `while-loop-residual-offloader` moves: what becomes of them, and equal results."""

from __future__ import annotations

import pytest
from tests.memory_space.residuals.programs import FUSED, PASS, UNFUSED, changed, copied
from tests.passes.checked_run import run_checked, run_equal, shown

from hloopt.ir import Module, Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module

_STATE = "(s32[], f32[8]{0}, f32[4,8]{1,0})"
_RESIDUALS = "residuals = f32[4,8]{1,0} get-tuple-element(loop), index=2"


def _moved(text: str) -> Module:
    """The module after the pass, which does nothing more when it runs again."""
    module = run_equal(PASS, text, min_size=0)
    before = print_module(module)
    assert not create_pass(PASS, {"min_size": 0}).run(module, PassContext(PASS))
    assert print_module(module) == before
    return module


def _on_host(module: Module) -> list[str]:
    """The loops whose state has a stack in host memory."""
    return [i.name for i in module.instructions(Opcode.WHILE) if "S(5)" in i.shape.text]


def test_slices_outside_of_fusions_stay_where_they_are() -> None:
    module = _moved(UNFUSED)
    assert _on_host(module) == ["loop", "gradients"]
    assert 'custom_call_target="AllocateBuffer"' in str(module.entry)
    assert not list(module.instructions(Opcode.BROADCAST))
    assert not list(module.instructions(Opcode.ASYNC_START))


def test_fusions_take_slices() -> None:
    module = _moved(FUSED)
    lines = "\n".join(shown(module.entry["gradients"].called[0]))
    assert lines.count("fusion-start(") == 2, "equal slices are taken once"
    assert lines.count("calls=fused_subtract") == 1
    assert "product.1 = f32[8] fusion(g.1, dynamic-slice-done, dynamic-slice-done.1)" in lines
    assert "bitcast(dynamic-slice-done), control-predecessors={product.1}" in lines


def test_fusions_give_out_slices() -> None:
    module = _moved(FUSED)
    lines = "\n".join(shown(module.entry["loop"].called[0]))
    assert "updated = f32[1,8] fusion(x.2), kind=kLoop, calls=fused_update" in lines
    assert "fusion-start(a.3, updated, loop_select_fusion, constant)" in lines
    assert "row.3 = f32[1,8] bitcast(x.2)" in lines
    assert "fusion-start(b.2, row.3, i.4, constant)" in lines
    assert "cosine(x.2), control-predecessors={dynamic-update-slice-done.1}" in lines


def test_a_transfer_is_a_fusion_as_xla_has_it() -> None:
    text = FUSED.replace(
        "dynamic_slice_sizes={1,8}", 'dynamic_slice_sizes={1,8}, backend_config={"a":"1"}'
    )
    module = _moved(text)
    start = next(iter(module.instructions(Opcode.ASYNC_START)))
    (fusion,) = [i for i in start.called[0].instructions if i.opcode is Opcode.FUSION]
    assert fusion.is_root
    assert fusion.attributes["kind"] == "kLoop"
    slices = list(module.instructions(Opcode.DYNAMIC_SLICE))
    assert [i.attributes["backend_config"] for i in slices] == ['{"a":"1"}'] * 2


def test_the_initial_value_and_what_only_made_it_are_gone() -> None:
    module = _moved(FUSED)
    assert not {"fused_broadcast", "fused_slice", "fused_store"} & module.computations.keys()


def test_computations_that_were_dead_before_stay() -> None:
    dead = "dead {\n  ROOT zero = s32[] constant(0)\n}\n\nENTRY main"
    assert "dead" in _moved(changed(UNFUSED, ("ENTRY main", dead))).computations


def test_a_fusion_with_several_results_gives_out_a_slice_among_them() -> None:
    both = "(f32[4,8]{1,0}, f32[8]{0})"
    text = changed(
        FUSED,
        ("ROOT written = f32[4,8]{1,0} dynamic-update-slice(stack, row, place, zero)",
         "written = f32[4,8]{1,0} dynamic-update-slice(stack, row, place, zero)\n"
         f"  ROOT both = {both} tuple(written, sine)"),
        ("updated = f32[4,8]{1,0} fusion(a, x, i), kind=kLoop, calls=fused_update",
         f"both = {both} fusion(a, x, i), kind=kLoop, calls=fused_update\n"
         "  updated = f32[4,8]{1,0} get-tuple-element(both), index=0\n"
         "  sined = f32[8]{0} get-tuple-element(both), index=1"),
        ("cosine(x), control", "cosine(sined), control"),
    )  # fmt: skip
    module = _moved(text)
    fusion = module.entry["loop"].called[0]["both"]
    assert fusion.shape.text == "(f32[1,8]{1,0}, f32[8]{0})"


def test_a_slice_that_is_an_operand_among_several_results_is_copied() -> None:
    both = "(f32[4,8]{1,0}, f32[1,8]{1,0})"
    text = changed(
        FUSED,
        ("x = f32[8]{0} parameter(1)\n  i = s32[] parameter(2)\n  sine = f32[8]{0} sine(x)\n"
         "  row = f32[1,8]{1,0} bitcast(sine)",
         "row = f32[1,8]{1,0} parameter(1)\n  i = s32[] parameter(2)\n"
         "  other = f32[1,8]{1,0} sine(row)"),
        ("ROOT written = f32[4,8]{1,0} dynamic-update-slice(stack, row, place, zero)",
         "written = f32[4,8]{1,0} dynamic-update-slice(stack, row, place, zero)\n"
         f"  ROOT both = {both} tuple(written, other)"),
        ("updated = f32[4,8]{1,0} fusion(a, x, i), kind=kLoop, calls=fused_update",
         "line = f32[1,8]{1,0} bitcast(x)\n"
         f"  both = {both} fusion(a, line, i), kind=kLoop, calls=fused_update\n"
         "  updated = f32[4,8]{1,0} get-tuple-element(both), index=0\n"
         "  row_of_sines = f32[1,8]{1,0} get-tuple-element(both), index=1\n"
         "  sined = f32[8]{0} bitcast(row_of_sines)"),
        ("cosine(x), control", "cosine(sined), control"),
    )  # fmt: skip
    body = _moved(text).entry["loop"].called[0]["both"].called[0]
    assert body.root.operands[0].opcode is Opcode.COPY


def test_only_named_stacks_move() -> None:
    context = PassContext(PASS)
    module = parse_module(FUSED)
    assert create_pass(PASS, {"min_size": 0, "names": ("%fill_b", "fil_a")}).run(module, context)
    assert [remark.instruction for remark in context.remarks] == ["fill_b"]
    (note,) = context.notes
    assert note.startswith("no initial value of a stack has the name %fil_a; ")


@pytest.mark.parametrize(("size", "changes"), [(128, True), (129, False)])
def test_small_stacks_stay(size: int, changes: bool) -> None:
    run_checked(PASS, UNFUSED, changes=changes, min_size=size)


def test_the_remark_says_how_much_a_trip_moves() -> None:
    context = PassContext(PASS)
    create_pass(PASS, {"min_size": 0}).run(parse_module(UNFUSED), context)
    assert [(r.kind, r.instruction, r.reason) for r in context.remarks] == [
        ("applied", "fill", "moved to host memory, 128 bytes; a trip of %loop writes 32 of them")
    ]
    assert context.statistics == {
        "bytes moved to host memory": 128,
        "stacks moved to host memory": 1,
    }


_WAYS = {
    "barrier": [
        (_RESIDUALS, f"kept = {_STATE} opt-barrier(loop)\n  " + _RESIDUALS.replace("loop", "kept"))
    ],
    "copy": [
        (_RESIDUALS, _RESIDUALS + "\n  copied = f32[4,8]{1,0} copy(residuals)"
         "\n  viewed = f32[4,8]{1,0} bitcast(copied)"),
        ("tuple(first, y, residuals)", "tuple(first, y, viewed)"),
    ],
    "copy of the initial value": [
        ("init = ", "copied = f32[4,8]{1,0} copy(fill)\n  init = "),
        ("tuple(first, x, fill)", "tuple(first, x, copied)"),
    ],
    "buffer that is not set": [
        ("broadcast(seven), dimensions={}", 'custom-call(), custom_call_target="AllocateBuffer"')
    ],
    "nested tuples": [
        (_RESIDUALS, _RESIDUALS + "\n  pair = (f32[4,8]{1,0}, f32[8]{0}) tuple(residuals, y)"
         "\n  nested = ((f32[4,8]{1,0}, f32[8]{0}), s32[]) tuple(pair, first)"
         "\n  inner = (f32[4,8]{1,0}, f32[8]{0}) get-tuple-element(nested), index=0"
         "\n  taken = f32[4,8]{1,0} get-tuple-element(inner), index=0"),
        ("tuple(first, y, residuals)", "tuple(first, y, taken)"),
    ],
    "two writes in a trip": [
        ("one = s32[] constant(1)\n  next = s32[] add(i, one)\n"
         f"  ROOT t = {_STATE} tuple(next, sine, written)",
         "one = s32[] constant(1)\n  second = s32[] add(i, one)\n"
         "  row_b = f32[1,8]{1,0} reshape(sine)\n"
         "  both = f32[4,8]{1,0} dynamic-update-slice(written, row_b, second, zero)\n"
         f"  next = s32[] add(second, one)\n  ROOT t = {_STATE} tuple(next, sine, both)"),
    ],
    "first trip peeled": [
        ("init = ", "row = f32[1,8]{1,0} reshape(x)\n"
         "  peeled = f32[4,8]{1,0} dynamic-update-slice(fill, row, first, first)\n"
         "  begin = s32[] constant(1)\n  init = "),
        ("tuple(first, x, fill)", "tuple(begin, x, peeled)"),
    ],
    "index out of bounds": [
        ("written = f32[4,8]{1,0} dynamic-update-slice(stack, row, i, zero)",
         "two = s32[] constant(2)\n  before = s32[] subtract(i, two)\n"
         "  written = f32[4,8]{1,0} dynamic-update-slice(stack, row, before, zero)"),
        ("trips = s32[] constant(4)\n  ROOT go = pred[] compare(i, trips), direction=LT\n}"
         "\n\nbackward {",
         "trips = s32[] constant(7)\n  ROOT go = pred[] compare(i, trips), direction=LT\n}"
         "\n\nbackward {"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("changes", _WAYS.values(), ids=_WAYS.keys())
def test_a_stack_is_followed(changes: list[tuple[str, str]]) -> None:
    module = _moved(changed(UNFUSED, *changes))
    assert _on_host(module) == ["loop", "gradients"]
    assert not [i for i in module.instructions(Opcode.COPY) if i.shape.dimensions == (4, 8)]


def test_several_loops_may_read_it() -> None:
    text = changed(
        copied(UNFUSED, "backward", "backward_condition"),
        ("ROOT r = f32[8]{0} get-tuple-element(gradients), index=1",
         f"more = {_STATE} while(state), condition=backward_condition_2, body=backward_2\n"
         f"  final = {_STATE} while(gradients), condition=backward_condition_3, body=backward_3\n"
         "  g = f32[8]{0} get-tuple-element(final), index=1\n"
         "  z = f32[8]{0} get-tuple-element(more), index=1\n  ROOT r = f32[8]{0} add(g, z)"),
    )  # fmt: skip
    assert _on_host(_moved(text)) == ["loop", "gradients", "more", "final"]


def test_a_stack_in_a_loop_of_its_own() -> None:
    """Both loops run in each trip of an outer one, with a new stack."""
    entry = UNFUSED[UNFUSED.index("ENTRY main {") :]
    inner = entry.replace("ENTRY main {", "step {").replace(
        "x = f32[8]{0} parameter(0)",
        "o = (s32[], f32[8]{0}) parameter(0)\n  n = s32[] get-tuple-element(o), index=0\n"
        "  x = f32[8]{0} get-tuple-element(o), index=1",
    )
    inner = inner.replace("ROOT r =", "r =").replace(
        "index=1\n}",
        "index=1\n  one = s32[] constant(1)\n  m = s32[] add(n, one)\n"
        "  ROOT u = (s32[], f32[8]{0}) tuple(m, r)\n}",
    )
    outer = """
step_condition {
  o = (s32[], f32[8]{0}) parameter(0)
  n = s32[] get-tuple-element(o), index=0
  three = s32[] constant(3)
  ROOT go = pred[] compare(n, three), direction=LT
}

ENTRY main {
  x = f32[8]{0} parameter(0)
  zero = s32[] constant(0)
  init = (s32[], f32[8]{0}) tuple(zero, x)
  steps = (s32[], f32[8]{0}) while(init), condition=step_condition, body=step
  ROOT r = f32[8]{0} get-tuple-element(steps), index=1
}
"""
    module = _moved(UNFUSED[: UNFUSED.index("ENTRY main {")] + inner + outer)
    assert _on_host(module) == ["loop", "gradients"]


def test_a_stack_that_no_loop_writes() -> None:
    """The loop was unrolled: four writes one after the other."""
    rows = [
        f"n{n} = s32[] constant({n})\n  row{n} = f32[1,8]{{1,0}} reshape(x)\n  w{n + 1} = "
        f"f32[4,8]{{1,0}} dynamic-update-slice(w{n}, row{n}, n{n}, first)\n  "
        for n in range(4)
    ]
    text = changed(
        UNFUSED,
        ("fill = f32[4,8]", "w0 = f32[4,8]"),
        ("init = ", "".join(rows) + "init = "),
        ("tuple(first, x, fill)", "tuple(first, x, w0)"),
        ("tuple(first, y, residuals)", "tuple(first, y, w4)"),
    )
    context = PassContext(PASS)
    module = parse_module(text)
    assert create_pass(PASS, {"min_size": 0}).run(module, context)
    assert [remark.reason for remark in context.remarks] == [
        "moved to host memory, 128 bytes",
        "stays in device memory: nothing reads it once it is written",
    ]
    _moved(text)
