"""Collectives in parts: what is cut with them, along which dimension, and what stays whole."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import reasons_to_stay, run_equal, shown
from tests.passes.test_application_texts import Recorded

from hloopt.diagnostics import PipelineError
from hloopt.ir import Module, Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

HEAD = """HloModule m, num_partitions=2

add {{
  left = f32[] parameter(0)
  right = f32[] parameter(1)
  ROOT sum = f32[] add(left, right)
}}
{more}
ENTRY main {{
  x = f32[8,6]{{1,0}} parameter(0)
  w = f32[6,4]{{1,0}} parameter(1)
  i = s32[] parameter(2)
  {body}
}}
"""
GROUPS = "channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true"
REDUCED = "r = f32[8,4]{1,0} all-reduce(d), " + GROUPS + ", to_apply=add"
DOT = "d = f32[8,4]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
PAIR = "(f32[8,4]{1,0}, f32[8,6]{1,0})"
SINE = "ROOT s = f32[8,4]{1,0} sine(r)"


def text_of(*lines: str, more: str = "") -> str:
    return HEAD.format(body="\n  ".join(lines), more=more)


def split(*lines: str, more: str = "", **options: object) -> Module:
    return run_equal("collective-splitter", text_of(*lines, more=more), **options)


def sizes(module: Module, opcode: Opcode) -> list[tuple[int, ...]]:
    return [i.shape.dimensions for i in module.instructions(opcode)]


def reason(*lines: str, more: str = "", **options: object) -> str:
    (found,) = reasons_to_stay("collective-splitter", text_of(*lines, more=more), **options)
    return found


def test_a_dot_before_and_what_follows_work_on_parts() -> None:
    module = split(DOT, REDUCED, SINE)
    assert shown(module.entry) == [
        "x = f32[8,6] parameter(0)",
        "w = f32[6,4] parameter(1)",
        "i = s32[] parameter(2)",
        "slice = f32[4,6] slice(x), slice={[0:4], [0:6]}",
        "slice.1 = f32[4,6] slice(x), slice={[4:8], [0:6]}",
        "d.1 = f32[4,4] dot(slice, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "d.2 = f32[4,4] dot(slice.1, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        f"r.1 = f32[4,4] all-reduce(d.1), {GROUPS}, to_apply=add",
        f"r.2 = f32[4,4] all-reduce(d.2), {GROUPS.replace('=1', '=2', 1)}, to_apply=add",
        "s.1 = f32[4,4] sine(r.1)",
        "s.2 = f32[4,4] sine(r.2)",
        "ROOT concatenate = f32[8,4] concatenate(s.1, s.2), dimensions={0}",
    ]


def test_as_many_parts_as_are_wanted_and_no_more_than_divide() -> None:
    assert sizes(split(DOT, REDUCED, SINE, parts=4), Opcode.ALL_REDUCE) == [(2, 4)] * 4
    assert reason(DOT, REDUCED, SINE, parts=5).startswith("nothing beside it")


def test_the_most_major_dimension_by_the_layout_is_cut() -> None:
    minor = [line.replace("f32[8,4]{1,0}", "f32[8,4]{0,1}") for line in (DOT, REDUCED, SINE)]
    assert sizes(split(*minor), Opcode.ALL_REDUCE) == [(8, 2)] * 2
    assert sizes(split(*minor), Opcode.SLICE) == [(6, 2)] * 2


def test_a_dimension_along_which_something_is_cut_with_it_is_taken() -> None:
    across = "ROOT t = f32[8]{0} reduce(r, z), dimensions={1}, to_apply=add"
    along = "ROOT t = f32[6]{0} reduce(r, z), dimensions={0}, to_apply=add"
    sent = f"r = f32[8,6]{{1,0}} all-reduce(x), {GROUPS}, to_apply=add"
    assert sizes(split("z = f32[] constant(0)", sent, across), Opcode.ALL_REDUCE) == [(4, 6)] * 2
    module = split("z = f32[] constant(0)", sent, along)
    assert sizes(module, Opcode.ALL_REDUCE) == [(8, 3)] * 2
    assert sizes(module, Opcode.REDUCE) == [(3,)] * 2


@pytest.mark.parametrize(
    ("collective", "parts"),
    [
        (f"c = f32[16,4]{{1,0}} all-gather(d), {GROUPS}, dimensions={{0}}", (16, 2)),
        (f"c = f32[8,8]{{1,0}} all-gather(d), {GROUPS}, dimensions={{1}}", (4, 8)),
        (
            f"c = f32[4,4]{{1,0}} reduce-scatter(d), {GROUPS}, dimensions={{0}}, to_apply=add",
            (4, 2),
        ),
        (
            "c = f32[8,4]{1,0} all-to-all(d), channel_id=1, replica_groups={{0,1}}, dimensions={0}",
            (8, 2),
        ),
        (
            "c = f32[8,4]{1,0} collective-permute(d), channel_id=1, source_target_pairs={{0,1}}",
            (4, 4),
        ),
    ],
)
def test_collectives_are_not_cut_along_their_own_dimension(
    collective: str, parts: tuple[int, int]
) -> None:
    shape = collective.split()[2]
    module = split(DOT, collective, f"ROOT s = {shape} sine(c)")
    opcode = Opcode(collective.split()[3].partition("(")[0])
    assert sizes(module, opcode) == [parts] * 2
    assert [i.attributes["channel_id"] for i in module.instructions(opcode)] == ["1", "2"]


@pytest.mark.parametrize(
    "use",
    [
        "ROOT u = f32[4,8]{1,0} transpose(r), dimensions={1,0}",
        "ROOT u = f32[2,4,4]{2,1,0} reshape(r)",
        "ROOT u = f32[32]{0} bitcast(r)",
        "ROOT u = f32[4,8]{0,1} bitcast(r)",
        "ROOT u = f32[8,4,3]{2,1,0} broadcast(r), dimensions={0,1}",
        "ROOT u = f32[8,8]{1,0} concatenate(r, d), dimensions={1}",
        "ROOT u = f32[8,2]{1,0} slice(r), slice={[0:8], [1:3]}",
        "ROOT u = f32[8,4]{1,0} reverse(r), dimensions={1}",
        "ROOT u = f32[8,6]{1,0} pad(r, z), padding=0_0x1_1",
        "ROOT u = f32[8,2]{1,0} dynamic-slice(r, i, i), dynamic_slice_sizes={8,2}",
        "ROOT u = f32[8]{0} reduce(r, z), dimensions={1}, to_apply=add",
        "ROOT u = f32[8,4]{1,0} clamp(z, r, d)",
        "b = f32[8,4]{1,0} iota(), iota_dimension=1\n  ROOT u = f32[8,4]{1,0} add(r, b)",
        "b = f32[8,4]{1,0} iota(), iota_dimension=0\n  ROOT u = f32[8,4]{1,0} add(r, b)",
        "ROOT u = f32[8,8]{1,0} dot(r, r), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
        "ROOT u = f32[6,4]{1,0} dot(x, r), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
        "ROOT u = f32[8,6]{1,0} pad(r, z), padding=0_0x1_1_0",
        "ROOT u = f32[9,4]{1,0} pad(r, z), padding=0_1x0_0",
        "ROOT u = f32[4,4]{1,0} slice(r), slice={[1:5], [0:4]}",
        "ROOT u = f32[8,4]{1,0} reverse(r), dimensions={0}",
        "ROOT u = f32[4,2]{1,0} dynamic-slice(r, i, i), dynamic_slice_sizes={4,2}",
        "ROOT u = f32[16,4]{1,0} concatenate(r, d), dimensions={0}",
        "ROOT u = f32[4,8]{1,0} reshape(r)",
        "ROOT u = f32[8,4]{1,0} dynamic-update-slice(r, z0, i, i)",
    ],
)
def test_each_use_computes_the_same(use: str) -> None:
    lines = ["z = f32[] constant(0)", "z0 = f32[2,1]{1,0} constant({{7},{8}})"]
    for parts in (2, 4):
        module = split(*lines, DOT, REDUCED, use, parts=parts)
        assert len(sizes(module, Opcode.ALL_REDUCE)) == parts


def test_batches_are_cut_in_both_operands() -> None:
    batch = "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}"
    module = split(
        "a = f32[2,4,6]{2,1,0} reshape(x)",
        "v = f32[2,6,2]{2,1,0} reshape(w)",
        f"d = f32[2,4,2]{{2,1,0}} dot(a, v), {batch}, rhs_contracting_dims={{1}}",
        f"ROOT r = f32[2,4,2]{{2,1,0}} all-reduce(d), {GROUPS}, to_apply=add",
    )
    assert sizes(module, Opcode.DOT) == [(1, 4, 2)] * 2


# -- how far ---------------------------------------------------------------------------------------

CHAIN = (
    DOT,
    REDUCED,
    "e = f32[8,6]{1,0} dot(r, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
    "ROOT f = f32[8,4]{1,0} dot(e, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
)


@pytest.mark.parametrize(("reach", "dots"), [(None, 6), (2, 6), (1, 5)])
def test_so_many_dots_in_a_row_work_on_parts(reach: int | None, dots: int) -> None:
    assert len(sizes(split(*CHAIN, reach=reach), Opcode.DOT)) == dots


@pytest.mark.parametrize(("reach", "dots"), [(None, 3), (1, 3), (2, 4)])
def test_before_a_collective_it_is_one_dot_or_as_many(reach: int | None, dots: int) -> None:
    first = "c = f32[8,6]{1,0} dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    module = split(
        "v = f32[6,6]{1,0} dot(w, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
        first,
        DOT.replace("(x,", "(c,"),
        "ROOT " + REDUCED,
        reach=reach,
    )
    assert len(sizes(module, Opcode.DOT)) == dots + 1


def test_collectives_named_together_hand_parts_on_to_each_other() -> None:
    other = f"t = f32[8,6]{{1,0}} all-reduce(e), {GROUPS.replace('1', '2', 1)}, to_apply=add"
    lines = (*CHAIN[:-1], other, "ROOT n = f32[8,6]{1,0} negate(t)")
    module = split(*lines)
    assert len(sizes(module, Opcode.ALL_REDUCE)) == 4
    assert len(sizes(module, Opcode.CONCATENATE)) == 1
    module = split(*lines, names=["r"])
    assert len(sizes(module, Opcode.ALL_REDUCE)) == 3


def test_what_others_use_is_computed_once() -> None:
    module = split(DOT, REDUCED, "c = f32[8,4]{1,0} cosine(d)", "ROOT a = f32[8,4]{1,0} add(r, c)")
    assert sizes(module, Opcode.DOT) == [(8, 4)]
    assert sizes(module, Opcode.COSINE) == [(8, 4)]


def test_a_use_that_needs_more_slices_than_it_reads_parts_stays_whole() -> None:
    many = "v = f32[8,36]{1,0} concatenate(x, x, x, x, x, x), dimensions={1}"
    wide = "ROOT p = f32[8,40]{1,0} concatenate(r, v), dimensions={1}"
    assert sizes(split(many, DOT, REDUCED, wide), Opcode.CONCATENATE)[1:] == [(8, 4), (8, 40)]
    narrow = "ROOT p = f32[8,8]{1,0} concatenate(r, v), dimensions={1}"
    few = "v = f32[8,4]{1,0} slice(x), slice={[0:8], [0:4]}"
    assert sizes(split(few, DOT, REDUCED, narrow), Opcode.CONCATENATE)[:2] == [(4, 8), (4, 8)]


# -- fusions ---------------------------------------------------------------------------------------

FUSED = """
gemm {
  p = f32[8,6]{1,0} parameter(0)
  q = f32[6,4]{1,0} parameter(1)
  ROOT d = f32[8,4]{1,0} dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

norm {
  p = f32[8,4]{1,0} parameter(0)
  q = f32[8,6]{1,0} parameter(1)
  z = f32[] constant(0)
  zs = f32[8,4]{1,0} broadcast(z), dimensions={}
  h = f32[8,4]{1,0} slice(q), slice={[0:8], [2:6]}
  a = f32[8,4]{1,0} add(p, h)
  m = f32[8,4]{1,0} maximum(a, zs)
  s = f32[8]{0} reduce(m, z), dimensions={1}, to_apply=add
  ROOT t = (f32[8]{0}, f32[8,4]{1,0}) tuple(s, m)
}

sum {
  p = f32[8,4]{1,0} parameter(0)
  z = f32[] constant(0)
  ROOT s = f32[] reduce(p, z), dimensions={0,1}, to_apply=add
}
"""
GEMM = "d = f32[8,4]{1,0} fusion(x, w), kind=kCustom, calls=gemm"
NORM = "n = (f32[8]{0}, f32[8,4]{1,0}) fusion(r, x), kind=kLoop, calls=norm"
READ = (
    "n0 = f32[8]{0} get-tuple-element(n), index=0",
    "n1 = f32[8,4]{1,0} get-tuple-element(n), index=1",
    "ROOT t = (f32[8]{0}, f32[8,4]{1,0}) tuple(n0, n1)",
)


def test_fusions_are_cut_with_all_in_them_and_slice_what_comes_from_outside() -> None:
    module = split(GEMM, REDUCED, NORM, *READ, more=FUSED)
    entry = [line.partition(" = ")[2] for line in shown(module.entry)]
    assert "f32[4,4] fusion(slice, w), kind=kCustom, calls=gemm.clone" in entry
    assert "(f32[4], f32[4,4]) fusion(r.1, x), kind=kLoop, calls=norm.clone" in entry
    inside = [line.partition(" = ")[2] for line in shown(module.computations["norm.clone.1"])]
    assert inside[1] == "f32[8,6] parameter(1)"
    assert any(line.startswith("f32[4,6] slice(q") and "[4:8], [0:6]" in line for line in inside)


def test_a_fusion_that_needs_the_whole_gets_it() -> None:
    lines = (GEMM, REDUCED, "ROOT s = f32[] fusion(r), kind=kInput, calls=sum")
    module = split(*lines, more=FUSED)
    assert sizes(module, Opcode.ALL_REDUCE) == [(4, 4)] * 2
    assert sizes(module, Opcode.CONCATENATE) == [(8, 4)]


def test_a_fusion_whose_result_is_read_as_a_whole_stays() -> None:
    module = split(GEMM, REDUCED, NORM.replace("n =", "ROOT n ="), more=FUSED)
    assert sizes(module, Opcode.CONCATENATE) == [(8, 4)]


def test_a_fusion_that_works_in_place_stays() -> None:
    alias = "output_to_operand_aliasing={{1}: (0, {})}"
    module = split(GEMM, REDUCED, f"{NORM}, {alias}", *READ, more=FUSED)
    assert sizes(module, Opcode.CONCATENATE) == [(8, 4)]


# -- what stays ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (
            (DOT, f"r = {PAIR} all-reduce(d, x), {GROUPS}, to_apply=add"),
            "it has 2 operands and gives a tuple",
        ),
        ((DOT, f"{REDUCED}, control-predecessors={{d}}", SINE), "it has control dependencies"),
        (
            (DOT, REDUCED.replace("to_apply", "constrain_layout=true, to_apply"), SINE),
            "it constrains its layout",
        ),
        (
            (f"ROOT r = f32[8,6]{{1,0}} all-reduce(x), {GROUPS}, to_apply=add",),
            "nothing beside it can work on 2 parts of what it sends",
        ),
    ],
)
def test_collectives_that_stay(lines: tuple[str, ...], words: str) -> None:
    assert reason(*lines) == words


def test_a_collective_that_is_wrapped_stays() -> None:
    more = f"""
wrapped {{
  x = f32[8,6]{{1,0}} parameter(0)
  ROOT r = f32[8,6]{{1,0}} all-reduce(x), {GROUPS}, to_apply=add
}}
"""
    lines = (
        "a = ((f32[8,6]{1,0}), f32[8,6]{1,0}, u32[]) async-start(x), calls=wrapped",
        "ROOT b = f32[8,6]{1,0} async-done(a)",
    )
    assert reason(*lines, more=more) == "it is wrapped by an async-start"


@pytest.mark.parametrize(
    "line",
    [
        f"{DOT}, control-predecessors={{x}}",
        'd = f32[8,4]{1,0} custom-call(x), custom_call_target="t", '
        "custom_call_has_side_effect=true",
        f"d = f32[8,4]{{1,0}} all-reduce(k), {GROUPS.replace('1', '2', 1)}, to_apply=add",
    ],
)
def test_what_must_run_once_is_not_cut(line: str) -> None:
    text = text_of("k = f32[8,4]{1,0} slice(x), slice={[0:8], [0:4]}", line, "ROOT " + REDUCED)
    module = parse_module(text)
    create_pass("collective-splitter", {"names": ["r"]}).run(module, PassContext())
    assert len([i for i in module.instructions() if i.name.startswith("d")]) == 1


def test_names_and_applications() -> None:
    applications = Recorded()
    context = PassContext(applications=applications)
    module = parse_module(text_of(DOT, REDUCED, SINE))
    assert create_pass("collective-splitter", {"names": ["r", "q"]}).run(module, context)
    assert applications.texts == ["2 parts along dimension 0"]
    assert context.notes == ["no collective has the name %q"]


@pytest.mark.parametrize("options", [{"parts": 1}, {"reach": 0}])
def test_options_that_cut_nothing_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(
        PipelineError, match="collective-splitter needs 2 parts and a reach of 1 at least"
    ):
        create_pass("collective-splitter", options).run(
            parse_module(text_of(DOT, REDUCED, SINE)), PassContext()
        )


def test_a_schedule_is_kept() -> None:
    text = text_of(DOT, REDUCED, SINE).replace("m, num", "m, is_scheduled=true, num")
    module = run_equal("collective-splitter", text)
    assert module.is_scheduled
