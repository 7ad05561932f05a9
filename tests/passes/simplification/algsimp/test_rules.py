"""Rules of algsimp applied to small programs, which compute the same before and after."""

from __future__ import annotations

import pytest
from tests.passes.simplification.algsimp.programs import program, simplified

from hloopt.equivalence import Reference, RunSettings
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.rewriting.rules.rule import involves_floats
from hloopt.passes.simplification.algsimp.table import RULES, rules_by_name
from hloopt.preserves import PRESERVES
from hloopt.text import parse_module

_P = "p = f32[4] parameter(0) "
_S = "p = s32[4] parameter(0) q = s32[4] parameter(1) "
_ZERO = "z = f32[] constant(0) "
_LAID_OUT: dict[str, object] = {"is_layout_sensitive": True}
_ASSOCIATIVE: dict[str, object] = {
    "use_associative_reordering": True,
    "associative_reordering_threshold": 1.0,
}

_ONEDNN: dict[str, object] = {"executing_on_cpu": True, "enable_onednn_support": True}

FIRES: list[tuple[str, str, dict[str, object]]] = [
    ("subtract-sum", f"{_S}a = s32[4] add(q, p) ROOT r = s32[4] subtract(p, a)", {}),
    ("subtract-from-sum", f"{_S}a = s32[4] add(q, p) ROOT r = s32[4] subtract(a, p)", {}),
    ("subtract-difference", f"{_S}a = s32[4] subtract(p, q) ROOT r = s32[4] subtract(p, a)", {}),
    ("add-of-subtract", f"{_S}a = s32[4] subtract(q, p) ROOT r = s32[4] add(a, p)", {}),
    ("factor-sum", f"{_S}k = s32[4] parameter(2) a = s32[4] multiply(k, p) "
     "b = s32[4] multiply(q, k) ROOT r = s32[4] add(a, b)", {}),
    ("multiply-by-zero", f"{_S}z = s32[4] constant({{0,0,0,0}}) ROOT r = s32[4] multiply(z, p)",
     {}),
    ("multiply-negations", f"{_P}q = f32[4] parameter(1) a = f32[4] negate(p) "
     "b = f32[4] negate(q) ROOT r = f32[4] multiply(a, b)", {}),
    ("divide-by-rsqrt", f"{_P}q = f32[4] parameter(1) a = f32[4] rsqrt(q) "
     "ROOT r = f32[4] divide(p, a)", {}),
    ("divide-by-quotient", f"{_P}q = f32[4] parameter(1) k = f32[4] parameter(2) "
     "a = f32[4] divide(q, k) ROOT r = f32[4] divide(p, a)", {}),
    ("divide-by-power-of-two", "p = u8[4] parameter(0) k = u8[] constant(16) "
     "b = u8[4] broadcast(k), dimensions={} ROOT r = u8[4] divide(p, b)", {}),
    ("remainder-by-power-of-two", "p = s8[] parameter(0) k = s8[] constant(64) "
     "ROOT r = s8[] remainder(p, k)", {}),
    ("compare-of-select", "p = s32[4] parameter(0) q = s32[4] parameter(1) "
     "c = pred[4] compare(p, q), direction=GE i = s32[] constant(1) z = s32[] constant(0) "
     "x = s32[4] broadcast(i), dimensions={} y = s32[4] broadcast(z), dimensions={} "
     "s = s32[4] select(c, x, y) ROOT r = pred[4] compare(y, s), direction=NE", {}),
    ("select-identical", f"c = pred[4] parameter(1) {_P}ROOT r = f32[4] select(c, p, p)", {}),
    ("select-not-predicate", "c = pred[4] parameter(0) t = pred[] constant(true) "
     "f = pred[] constant(false) x = pred[4] broadcast(f), dimensions={} "
     "y = pred[4] broadcast(t), dimensions={} ROOT r = pred[4] select(c, x, y)", {}),
    ("or-zero", "p = s32[] parameter(0) z = s32[] constant(0) ROOT r = s32[] or(z, p)", {}),
    ("minmax-itself", f"{_P}ROOT r = f32[4] minimum(p, p)", {}),
    ("max-of-clamp", "p = f32[] parameter(0) l = f32[] constant(1) h = f32[] constant(2) "
     "c = f32[] clamp(l, p, h) ROOT r = f32[] maximum(c, l)", {}),
    ("minmax-with-minmax", f"{_P}q = f32[4] parameter(1) m = f32[4] minimum(p, q) "
     "ROOT r = f32[4] minimum(q, m)", {}),
    ("power-zero", "p = f32[] parameter(0) z = f32[] constant(0) ROOT r = f32[] power(p, z)", {}),
    ("power-half", "p = f32[] parameter(0) a = f32[] abs(p) h = f32[] constant(0.5) "
     "ROOT r = f32[] power(a, h)", {}),
    ("log-of-power", f"{_P}q = f32[4] parameter(1) e = f32[4] abs(p) a = f32[4] power(e, q) "
     "ROOT r = f32[4] log(a)", {}),
    ("log-of-sqrt", f"{_P}a = f32[4] sqrt(p) ROOT r = f32[4] log(a)", {}),
    ("rsqrt-of-inverse", "p = f32[] parameter(0) a = f32[] abs(p) i = f32[] constant(1) "
     "d = f32[] divide(i, a) ROOT r = f32[] rsqrt(d)", {}),
    ("iota-of-one", "ROOT r = s32[1,4] iota(), iota_dimension=0", {}),
    ("iota-of-one", "ROOT r = f32[0] iota(), iota_dimension=0", {}),
    ("narrow-operation", "p = u8[4] parameter(0) q = u8[4] parameter(1) a = u32[4] convert(p) "
     "b = u32[4] convert(q) m = u32[4] divide(a, b) ROOT r = u8[4] convert(m)", {}),
    ("reshape-of-empty", "p = f32[0,3] parameter(0) ROOT r = f32[3,0] reshape(p)", {}),
    ("layout-constraint", "p = f32[2,3]{1,0} parameter(0) ROOT r = f32[2,3]{0,1} "
     'custom-call(p), custom_call_target="LayoutConstraint"', _LAID_OUT),
    ("concatenate-one", f"{_P}ROOT r = f32[4] concatenate(p), dimensions={{0}}", {}),
    ("concatenate-slices", "p = f32[6,2] parameter(0) a = f32[2,2] slice(p), slice={[1:3], [0:2]} "
     "b = f32[1,2] slice(p), slice={[3:4], [0:2]} c = f32[1,2] slice(p), slice={[5:6], [0:2]} "
     "ROOT r = f32[4,2] concatenate(a, b, c), dimensions={0}", {}),
    ("concatenate-to-pad", f"{_P}z = f32[] parameter(1) b = f32[3] broadcast(z), dimensions={{}} "
     "ROOT r = f32[7] concatenate(b, p), dimensions={0}", {}),
    ("concatenate-of-same", "p = f32[2,1] parameter(0) "
     "ROOT r = f32[2,3] concatenate(p, p, p), dimensions={1}", {}),
    ("pad-of-empty", "p = f32[0] parameter(0) z = f32[] parameter(1) "
     "ROOT r = f32[3] pad(p, z), padding=1_2", {}),
    ("pad-with-nothing", f"{_P}z = f32[] parameter(1) ROOT r = f32[4] pad(p, z), padding=0_0", {}),
    ("reverse-of-ones", "p = f32[1,4] parameter(0) "
     "ROOT r = f32[1,4] reverse(p), dimensions={0}", {}),
    ("dynamic-slice-of-reshape", "p = f32[6,4] parameter(0) i = s32[] parameter(1) "
     "j = s32[] parameter(2) k = s32[] parameter(3) a = f32[6,1,4] reshape(p) "
     "ROOT r = f32[2,1,3] dynamic-slice(a, i, j, k), dynamic_slice_sizes={2,1,3}", {}),
    ("dynamic-slice-of-dynamic-slice", "p = f32[9] parameter(0) i = s32[] parameter(1) "
     "j = s32[] parameter(2) a = f32[5] dynamic-slice(p, i), dynamic_slice_sizes={5} "
     "ROOT r = f32[2] dynamic-slice(a, j), dynamic_slice_sizes={2}", {}),
    ("update-of-part", "p = f32[9] parameter(0) i = s32[] parameter(1) j = s32[] parameter(2) "
     "c = f32[2] parameter(3) a = f32[5] dynamic-slice(p, i), dynamic_slice_sizes={5} "
     "u = f32[5] dynamic-update-slice(a, c, j) ROOT r = f32[9] dynamic-update-slice(p, u, i)", {}),
    ("convolution-of-empty", "p = f32[0,4,2] parameter(0) k = f32[3,2,2] parameter(1) ROOT r = "
     "f32[0,2,2] convolution(p, k), window={size=3}, dim_labels=b0f_0io->b0f", {}),
    ("swap-convolution-operands", "p = f32[2,3,2] parameter(0) k = f32[7,2,3] parameter(1) "
     "ROOT r = f32[2,3,3] convolution(p, k), window={size=7 stride=2 pad=4_5}, "
     "dim_labels=b0f_0io->b0f", {}),
    ("convolution-to-dot", "p = f32[2,3,4]{2,1,0} parameter(0) k = f32[1,4,5]{2,1,0} parameter(1) "
     "ROOT r = f32[2,3,5]{2,1,0} convolution(p, k), window={size=1}, dim_labels=b0f_0io->b0f",
     _LAID_OUT),
    ("upcast-convolution", "p = bf16[1,4,2] parameter(0) k = bf16[3,2,2] parameter(1) ROOT r = "
     "bf16[1,2,2] convolution(p, k), window={size=3 rhs_reversal=1}, dim_labels=b0f_0io->b0f",
     _ONEDNN),
    ("dot-of-empty", "p = f32[2,0] parameter(0) q = f32[0,3] parameter(1) ROOT r = f32[2,3] "
     "dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}", {}),
    ("reduce-of-negate", f"{_P}{_ZERO}n = f32[4] negate(p) "
     "ROOT r = f32[] reduce(n, z), dimensions={0}, to_apply=add", {}),
    ("reduce-of-transpose", f"p = f32[2,3,4] parameter(0) {_ZERO}"
     "t = f32[4,2,3] transpose(p), dimensions={2,0,1} "
     "ROOT r = f32[4,3] reduce(t, z), dimensions={1}, to_apply=add", {}),
    ("window-of-scalar", f"p = f32[] parameter(0) {_ZERO}"
     "ROOT r = f32[] reduce-window(p, z), window={}, to_apply=add", {}),
    ("gather-to-selects", "p = f32[3] parameter(0) i = s32[5] parameter(1) ROOT r = f32[5] "
     "gather(p, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, "
     "index_vector_dim=1, slice_sizes={1}", {}),
    ("gather-of-scalar", "p = f32[1,1] parameter(0) i = s32[5,2] parameter(1) ROOT r = f32[5] "
     "gather(p, i), offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={0,1}, "
     "index_vector_dim=1, slice_sizes={1,1}", {}),
    ("gather-of-empty", "p = f32[0,3] parameter(0) i = s32[2,1] parameter(1) "
     "ROOT r = f32[2,0,3] gather(p, i), offset_dims={1,2}, collapsed_slice_dims={}, "
     "start_index_map={1}, index_vector_dim=1, slice_sizes={0,3}", {}),
    ("scatter-of-nothing", "p = f32[4] parameter(0) i = s32[0,1] parameter(1) "
     "u = f32[0] parameter(2) ROOT r = f32[4] scatter(p, i, u), update_window_dims={}, "
     "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
     "to_apply=add", {}),
    ("scatter-of-whole", "p = f32[4] parameter(0) i = s32[0] parameter(1) "
     "u = f32[4] parameter(2) ROOT r = f32[4] scatter(p, i, u), update_window_dims={0}, "
     "inserted_window_dims={}, scatter_dims_to_operand_dims={}, index_vector_dim=0, "
     "to_apply=add", {}),
    ("move-to-other-operand", f"p = f32[2,3] parameter(0) q = f32[9,4] parameter(1) {_ZERO}"
     "d = f32[2,9] pad(p, z), padding=0_0x1_3_1 ROOT r = f32[2,4] dot(d, q), "
     "lhs_contracting_dims={1}, rhs_contracting_dims={0}", _ASSOCIATIVE),
    ("move-to-other-operand", "p = f32[2,5] parameter(0) q = f32[2,4] parameter(1) "
     "d = f32[9,2,4] broadcast(q), dimensions={1,2} k = f32[5,9,2] parameter(2) "
     "ROOT r = f32[5,4] dot(k, d), lhs_contracting_dims={1,2}, rhs_contracting_dims={0,1}",
     _ASSOCIATIVE),
    ("window-to-reduce", f"p = f32[2,3] parameter(0) {_ZERO}ROOT r = f32[2,1] "
     "reduce-window(p, z), window={size=1x3}, to_apply=add", {}),
    ("transpose-of-dot", "p = f32[2,3] parameter(0) q = f32[3,4] parameter(1) d = f32[2,4] "
     "dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0} "
     "ROOT r = f32[4,2] transpose(d), dimensions={1,0}", {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "body", "options"), FIRES)
def test_a_rule_keeps_what_it_declares(name: str, body: str, options: dict[str, object]) -> None:
    after, context = simplified(body, **options)
    assert name in context.statistics
    before = parse_module(program(body))
    floats = max((rules_by_name()[n].floats for n in context.statistics), key=PRESERVES.index)
    has_floats = any(map(involves_floats, before.instructions()))
    kept = floats if has_floats else "bits"
    assert Reference(before, RunSettings(seeds=3)).compare(after, kept) is None
    assert not create_pass("algsimp", options).run(after, PassContext())


def test_rules_have_names_of_their_own_and_say_what_they_do() -> None:
    assert len(rules_by_name()) == len(RULES)
    assert all(rule.doc.rstrip().endswith(".") for rule in RULES)


def test_rules_are_left_out_by_name_and_by_what_they_keep() -> None:
    body = "p = f32[] parameter(0) z = f32[] constant(0) ROOT r = f32[] add(p, z)"
    for options in ({"disable_rules": ["add-zero"]}, {"preserve": "rounding"}):
        _, context = simplified(body, **options)
        assert context.statistics == {}
    _, context = simplified(body)
    assert context.statistics == {"add-zero": 1}


def test_integers_keep_every_bit_whatever_is_left_out() -> None:
    body = "p = s32[] parameter(0) z = s32[] constant(0) ROOT r = s32[] add(p, z)"
    _, context = simplified(body, preserve="bits")
    assert context.statistics == {"add-zero": 1}


@pytest.mark.parametrize("opcode", ["add", "multiply"])
def test_operations_on_constants_alone_come_to_an_end(opcode: str) -> None:
    body = (
        f"a = s32[] constant(1) b = s32[] constant(2) x = s32[] {opcode}(a, b) "
        f"y = s32[] {opcode}(b, b) z = s32[] {opcode}(x, y) ROOT r = s32[] {opcode}(z, a)"
    )
    _, context = simplified(body)
    assert context.notes == []


def test_one_sweep_leaves_what_it_made() -> None:
    body = (
        "p = f32[2,3] parameter(0) a = f32[6] reshape(p) b = f32[3,2] reshape(a) "
        "ROOT r = f32[2,3] reshape(b)"
    )
    once, _ = simplified(body, run_to_fixed_point=False)
    assert once.entry.root.opcode.value == "reshape"
    fully, _ = simplified(body)
    assert fully.entry.root.opcode.value == "parameter"


@pytest.mark.parametrize(
    ("attributes", "total"),
    [
        ("replica_groups={{0},{1}}, channel_id=1", "9"),
        ("replica_groups={{0,1}}, channel_id=1", "18"),
        ("replica_groups={{0,1}}", "6"),
        ("replica_groups={{0,1,2},{3,4,5}}, channel_id=1, use_global_device_ids=true", "9"),
    ],
)
def test_sums_of_constants_count_the_devices_of_a_group(attributes: str, total: str) -> None:
    text = program(
        "k = s32[] constant(3) b = s32[4] broadcast(k), dimensions={} "
        f"ROOT r = s32[4] all-reduce(b), {attributes}, to_apply=add_s32"
    ).replace("HloModule m", "HloModule m, replica_count=2, num_partitions=3")
    after = parse_module(text)
    assert create_pass("algsimp").run(after, PassContext())
    assert after.entry.root.operands[0].payload == total
    assert Reference(parse_module(text), RunSettings()).compare(after, "bits") is None
