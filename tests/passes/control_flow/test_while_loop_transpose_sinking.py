"""Arrays of which loops take slices, transposed slice by slice: what changes, and what stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.memory_space.residuals.programs import changed
from tests.passes.checked_run import reasons_to_stay, run_equal, shown

from hloopt.diagnostics import PassRefused
from hloopt.ir import Module, Opcode
from hloopt.pass_framework.applications import Applications
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.control_flow.transpose_sinking.views import transposed_dimensions
from hloopt.text import parse_module, print_module

PASS = "while-loop-transpose-sinking"
_STATE = "(s32[], f32[6]{0}, f32[4,8,6]{2,1,0})"
_SLICE = "f32[1,8,6]{2,1,0} dynamic-slice(weights, i, zero, zero), dynamic_slice_sizes={1,8,6}"
_TRANSPOSE = "weights = f32[4,8,6]{2,1,0} transpose(stored), dimensions={1,0,2}"


@pytest.fixture(scope="module")
def plain(root: Path) -> str:
    """A loop takes a slice of transposed weights in each trip."""
    return _example(root, "example")


@pytest.fixture(scope="module")
def fused(root: Path) -> str:
    """Fusions in two loops take slices of weights that a fusion transposes."""
    return _example(root, "fires")


def _example(root: Path, name: str) -> str:
    path = root / "tests" / "golden" / "passes" / PASS / f"{name}.hlo"
    text = path.read_text(encoding="utf-8")
    return text[text.index("HloModule") :]


def _sunk(text: str) -> Module:
    """The module after the pass, which does nothing more when it runs again."""
    module = run_equal(PASS, text)
    before = print_module(module)
    assert not create_pass(PASS, {}).run(module, PassContext(PASS))
    assert print_module(module) == before
    return module


def test_a_slice_is_transposed_in_the_place_of_the_array(plain: str) -> None:
    module = _sunk(plain)
    assert "weights" not in module.entry
    lines = "\n".join(shown(module.computations["layers"]))
    assert "dynamic-slice = f32[8,1,6] dynamic-slice(weights, zero, i, zero)" in lines
    assert "dynamic_slice_sizes={8,1,6}" in lines
    assert "transpose = f32[1,8,6] transpose(dynamic-slice), dimensions={1,0,2}" in lines


def test_fusions_take_slices_of_the_array_as_it_was(fused: str) -> None:
    module = _sunk(fused)
    assert "wrapped_transpose" not in module.computations
    root = module.computations["fused_slice"].root
    assert root.opcode is Opcode.COPY, "only the layout differs"
    assert root.operands[0].opcode is Opcode.DYNAMIC_SLICE
    convert = module.computations["fused_convert"]
    assert convert.root.operands[0].opcode is Opcode.TRANSPOSE
    assert not [i for i in convert.instructions if i.opcode is Opcode.BITCAST]


def test_remarks_and_statistics_say_what_is_transposed(fused: str) -> None:
    context = PassContext(PASS)
    create_pass(PASS, {}).run(parse_module(fused), context)
    assert [(r.kind, r.instruction, r.reason) for r in context.remarks] == [
        ("applied", "turned.1", "transposed slice by slice: 2 slices in %gradients, %loop")
    ]
    assert context.statistics == {
        "bytes not transposed before loops": 768,
        "transposes sunk into loops": 1,
    }


_WAYS = {
    "barrier": [
        ("zero = s32[] constant(0)\n  first", "kept = f32[4,8,6]{2,1,0} opt-barrier(weights)\n"
         "  zero = s32[] constant(0)\n  first"),
        ("tuple(zero, x, weights)", "tuple(zero, x, kept)"),
    ],
    "bitcast": [
        ("zero = s32[] constant(0)\n  first", "kept = f32[4,8,6]{2,1,0} bitcast(weights)\n"
         "  zero = s32[] constant(0)\n  first"),
        ("tuple(zero, x, weights)", "tuple(zero, x, kept)"),
    ],
    "half of it": [
        (_SLICE, "f32[2,8,6]{2,1,0} dynamic-slice(weights, i, zero, zero), "
         "dynamic_slice_sizes={2,8,6}"),
        ("f32[8,6]{1,0} reshape(layer)", "f32[16,6]{1,0} reshape(layer)"),
        ("hidden = f32[8]{0}", "hidden = f32[16]{0}"),
    ],
    "control dependencies of a tuple": [
        ("tuple(zero, x, weights)", "tuple(zero, x, weights), control-predecessors={x}"),
    ],
    "transposed twice": [
        (_TRANSPOSE, "between = f32[6,4,8]{2,1,0} transpose(stored), dimensions={2,1,0}\n"
         "  weights = f32[4,8,6]{2,1,0} transpose(between), dimensions={1,2,0}"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("changes", _WAYS.values(), ids=_WAYS.keys())
def test_an_array_is_followed(plain: str, changes: list[tuple[str, str]]) -> None:
    module = _sunk(changed(plain, *changes))
    assert not [i for i in module.entry.instructions if i.opcode is Opcode.TRANSPOSE]


def _beside(line: str) -> tuple[str, str]:
    """An instruction more in the loop."""
    hidden = "hidden = f32[8]{0} dot(weight, x)"
    return hidden, f"{line}\n  {hidden}"


_STAYS = {
    "a result": (
        ("y = f32[6]{0} get-tuple-element(loop), index=1",
         "last = f32[4,8,6]{2,1,0} get-tuple-element(loop), index=2"),
        "%main returns it",
    ),
    "another use": (
        _beside("other = f32[4,8,6]{2,1,0} negate(weights)"),
        "%other does more with it than to take slices",
    ),
    "other dimensions": (
        _beside("flat = f32[192]{0} bitcast(weights)"), "%flat gives it other dimensions"
    ),
    "another type": (
        _beside("bits = s32[4,8,6]{2,1,0} bitcast(weights)"), "%bits gives it other dimensions"
    ),
    "control dependencies": (
        _beside("same = f32[4,8,6]{2,1,0} bitcast(weights), control-predecessors={x}"),
        "%same has control dependencies",
    ),
    "a sharding": (
        _beside("same = f32[4,8,6]{2,1,0} bitcast(weights), sharding={replicated}"),
        "%same has a sharding, of its dimensions",
    ),
    "a sharding of Shardy": (
        _beside("same = f32[4,8,6]{2,1,0} bitcast(weights), frontend_attributes={"
                'xla.sdy.sharding="#sdy.sharding<@mesh, [{}, {\\"x\\"}, {}]>"}'),
        "%same has a sharding, of its dimensions",
    ),
    "a loop that is called twice": (
        ("ROOT y", f"again = {_STATE} while(loop), condition=condition, body=layers\n  ROOT y"),
        "%layers is called from several places",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("change", "reason"), _STAYS.values(), ids=_STAYS.keys())
def test_an_array_is_transposed_as_before(plain: str, change: tuple[str, str], reason: str) -> None:
    assert reasons_to_stay(PASS, changed(plain, change)) == [f"transposed as before: {reason}"]


def test_more_than_half_of_an_array_is_not_transposed_in_each_trip(plain: str) -> None:
    text = changed(
        plain,
        (_SLICE, _SLICE.replace("[1,8,6]", "[3,8,6]").replace("{1,8,6}", "{3,8,6}")),
        ("f32[8,6]{1,0} reshape(layer)", "f32[24,6]{1,0} reshape(layer)"),
        ("hidden = f32[8]{0}", "hidden = f32[24]{0}"),
    )
    assert reasons_to_stay(PASS, text) == [
        "transposed as before: %layer takes more than half of it"
    ]


def test_an_array_that_a_loop_gives_out_in_another_place_stays(plain: str) -> None:
    text = changed(
        plain,
        ("tuple(next, y, weights)", "tuple(next, y, weights, weights)"),
        ("tuple(zero, x, weights)", "tuple(zero, x, weights, other)"),
        (_TRANSPOSE, f"other = f32[4,8,6]{{2,1,0}} reshape(stored)\n  {_TRANSPOSE}"),
    )
    text = text.replace(_STATE, _STATE[:-1] + ", f32[4,8,6]{2,1,0})")
    assert reasons_to_stay(PASS, text) == ["transposed as before: %layers returns it"]


def test_what_no_loop_takes_slices_of_stays(plain: str) -> None:
    assert reasons_to_stay(PASS, changed(plain, (_SLICE, "f32[1,8,6]{2,1,0} iota(), "
                                                        "iota_dimension=1"))) == []  # fmt: skip
    outside = changed(
        plain,
        ("tuple(zero, x, weights)", "tuple(zero, x, other)"),
        (_TRANSPOSE, f"{_TRANSPOSE}\n  other = f32[4,8,6]{{2,1,0}} reshape(stored)\n"
         "  i = s32[] constant(0)\n  piece = f32[1,8,6]{2,1,0} dynamic-slice(weights, i, i, i), "
         "dynamic_slice_sizes={1,8,6}"),
    )  # fmt: skip
    assert reasons_to_stay(PASS, outside) == [], "it costs nothing while a loop runs"


def test_what_fusions_do_not_use_changes_with_the_array(fused: str) -> None:
    text = changed(
        fused,
        ("weights = f32[4,8,6]{1,0,2} parameter(0)\n  i = s32[] parameter(1)",
         "weights = f32[4,8,6]{1,0,2} parameter(0)\n  unused = f32[4,8,6]{1,0,2} parameter(2)\n"
         "  view = f32[6,4,8]{2,1,0} bitcast(unused)\n  i = s32[] parameter(1)"),
        ("fusion(weights, i)", "fusion(weights, i, weights)"),
    )  # fmt: skip
    module = parse_module(text)
    assert create_pass(PASS, {}).run(module, PassContext(PASS))
    body = module.computations["fused_slice"]
    given = [operand.shape for caller in body.callers for operand in caller.operands]
    assert [parameter.shape for parameter in body.parameters] == given
    assert not [i for i in body.instructions if i.opcode is Opcode.BITCAST]


_NOTE = '{"dynamic_slice_config":{"loop_index":0,"byte_offset":"0","byte_stride":"192"}}'
_FUSION = "fusion(weights, i), kind=kLoop, calls=fused_slice"


def test_notes_on_where_slices_were_go(fused: str) -> None:
    noted = changed(fused, (_FUSION, f"{_FUSION}, backend_config={_NOTE}"))
    assert "dynamic_slice_config" not in print_module(_sunk(noted))


def test_origins_of_arrays_with_other_dimensions_go(plain: str) -> None:
    text = plain.replace("index=2", 'index=2, origin={{"stored"}}')
    text = changed(
        text,
        ("tuple(zero, x, weights)", 'tuple(zero, x, weights), origin={({}, {"x"}, {"stored"})}'),
        ("while(first)", 'while(first), origin={({}, {"y"}, {"stored"})}'),
        (_SLICE, f'{_SLICE}, origin={{{{"slice"}}}}'),
    )
    module = _sunk(text)
    told = [i for i in module.instructions() if "origin" in i.attributes]
    assert [(i.opcode, i.attributes["origin"]) for i in told] == [
        (Opcode.TRANSPOSE, '{{"slice"}}')
    ]  # fmt: skip


def test_an_array_that_a_loop_changes_stays(plain: str) -> None:
    text = changed(
        plain,
        ("tuple(next, y, weights)", "tuple(next, y, other)"),
        ("zero = s32[] constant(0)\n  layer",
         "zero = s32[] constant(0)\n  other = f32[4,8,6]{2,1,0} iota(), iota_dimension=0\n  layer"),
    )  # fmt: skip
    assert reasons_to_stay(PASS, text) == []


def test_arrays_that_no_loop_takes_are_not_remarked_on() -> None:
    text = (
        "HloModule m\n\nENTRY e {\n  x = f32[8,4]{1,0} parameter(0)\n"
        "  ROOT t = f32[4,8]{1,0} transpose(x), dimensions={1,0}\n}"
    )
    assert reasons_to_stay(PASS, text) == []


_LOWER = "ROOT lower = bf16[6,1,8]{2,1,0} convert(layer)"
_SUM = "sum = f32[6,1,8]{2,1,0} add(layer, more)\n  " + _LOWER.replace("layer", "sum")
_FUSED = {
    "all of it": (
        "all = f32[6,4,8]{2,1,0} negate(view)\n  more = f32[6,1,8]{2,1,0} dynamic-slice(all, "
        "zero, i, zero), dynamic_slice_sizes={6,1,8}",
        "does more with it than to take slices",
    ),
    "other dimensions": (
        "flat = f32[192]{0} bitcast(weights)\n  some = f32[48]{0} slice(flat), slice={[0:48]}\n"
        "  more = f32[6,1,8]{2,1,0} bitcast(some)",
        "%flat gives it other dimensions",
    ),
}


@pytest.mark.parametrize(("lines", "reason"), _FUSED.values(), ids=_FUSED.keys())
def test_fusions_that_do_more_keep_an_array(fused: str, lines: str, reason: str) -> None:
    (told,) = reasons_to_stay(PASS, changed(fused, (_LOWER, f"{lines}\n  {_SUM}")))
    assert told.endswith(reason)


def test_custom_fusions_keep_an_array(fused: str) -> None:
    custom = changed(fused, (_FUSION, _FUSION.replace("kLoop", "kCustom")))
    (told,) = reasons_to_stay(PASS, custom)
    assert told.endswith(" is a custom fusion")


def test_an_array_that_a_fusion_gives_out_stays(fused: str) -> None:
    body = fused[fused.index("fused_slice {") : fused.index("layers {")]
    text = changed(
        fused,
        (body, "fused_slice {\n  weights = f32[4,8,6]{1,0,2} parameter(0)\n"
         "  ROOT same = f32[4,8,6]{1,0,2} bitcast(weights)\n}\n\n"),
        ("layer = f32[1,8,6]{1,0,2} fusion(weights, i)", "all = f32[4,8,6]{1,0,2} fusion(weights)"),
        ("f32[8,6]{0,1} bitcast(layer)", "f32[8,6]{0,1} broadcast(g), dimensions={0}"),
    )  # fmt: skip
    assert reasons_to_stay(PASS, text) == ["transposed as before: %fused_slice returns it"]


@pytest.mark.parametrize(
    ("operand", "result", "more"),
    [
        ("f32[<=8,4]{1,0}", "f32[4,<=8]{1,0} transpose(x), dimensions={1,0}", ""),
        ("f32[8,4]{1,0:S(5)}", "f32[4,8]{1,0} transpose(x), dimensions={1,0}", ""),
        ("f32[8,4]{1,0}", "f32[4,8]{1,0:S(5)} transpose(x), dimensions={1,0}", ""),
        ("s32[]", "s32[] transpose(x), dimensions={}", ""),
        ("s32[3]{0}", "s32[3]{0} transpose(x), dimensions={0}", ""),
        ("f32[8,4]{1,0}", "f32[8,4]{1,0} negate(x)", ""),
        (
            "f32[8,4]{1,0}",
            "f32[4,8]{1,0} fusion(x), kind=kLoop, calls=more",
            "more {\n  p = f32[8,4]{1,0} parameter(0)\n  n = f32[8,4]{1,0} negate(p)\n"
            "  ROOT t = f32[4,8]{1,0} transpose(n), dimensions={1,0}\n}\n\n",
        ),
    ],
)
def test_other_instructions_transpose_no_array(operand: str, result: str, more: str) -> None:
    text = f"HloModule m\n\n{more}ENTRY e {{\n  x = {operand} parameter(0)\n  ROOT r = {result}\n}}"
    assert transposed_dimensions(parse_module(text).entry.root) is None


def test_a_scheduled_module_is_refused(plain: str) -> None:
    module = parse_module(plain.replace("HloModule m", "HloModule m, is_scheduled=true"))
    with pytest.raises(PassRefused) as refused:
        create_pass(PASS, {}).run(module, PassContext(PASS))
    assert str(refused.value) == (
        "slices are transposed in place of arrays before there is a schedule"
    )
    assert refused.value.help == "run hlo-descheduler before it"


def test_a_limit_of_applications_is_kept(plain: str) -> None:
    context = PassContext(PASS, applications=Applications(0))
    assert not create_pass(PASS, {}).run(parse_module(plain), context)
