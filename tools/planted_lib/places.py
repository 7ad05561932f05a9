"""Miscompiles of the places of elements, and of devices."""

from __future__ import annotations

from planted_lib.cases import (
    FOUR,
    REDUCE,
    SQUARE,
    SUM,
    P,
    Q,
    case,
    entry,
    unary,
)

_GATHER = entry(
    "p = f32[10,4]{1,0} parameter(0)",
    "i = s32[6]{0} parameter(1)",
    "ROOT r = f32[6,4]{1,0} gather(p, i), offset_dims={1}, collapsed_slice_dims={0}, "
    "start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}",
)
_SCATTER = entry(
    "p = f32[10]{0} parameter(0)",
    "i = s32[6]{0} parameter(1)",
    "u = f32[6]{0} parameter(2)",
    "ROOT r = f32[10]{0} scatter(p, i, u), update_window_dims={}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum",
    before=SUM,
)
_UPDATE = entry(
    "p = f32[8]{0} parameter(0)",
    "u = f32[2]{0} parameter(1)",
    "i = s32[] parameter(2)",
    "n = f32[8]{0} dynamic-update-slice(p, u, i)",
    "old = f32[4]{0} slice(p), slice={[0:4]}",
    "ROOT r = (f32[8]{0}, f32[4]{0}) tuple(n, old)",
)
_REDUCED = entry(
    P,
    "ROOT r = f32[8]{0} all-reduce(p), channel_id=1, replica_groups={{0,1},{2,3}}, "
    "use_global_device_ids=true, to_apply=sum",
    before=SUM,
    header=FOUR,
)
_GATHERED = entry(
    P,
    "ROOT r = f32[32]{0} all-gather(p), channel_id=1, replica_groups={{0,1,2,3}}, "
    "use_global_device_ids=true, dimensions={0}",
    header=FOUR,
)
_PERMUTED = entry(
    P,
    "ROOT r = f32[8]{0} collective-permute(p), channel_id=1, "
    "source_target_pairs={{0,1},{1,2},{2,3},{3,0}}",
    header=FOUR,
)
_SCATTERED = entry(
    "p = f32[4,4]{1,0} parameter(0)",
    "a = f32[4,4]{1,0} all-reduce(p), channel_id=1, replica_groups={{0,1,2,3}}, "
    "use_global_device_ids=true, to_apply=sum",
    "d = u32[] partition-id()",
    "i = s32[] convert(d)",
    "z = s32[] constant(0)",
    "ROOT r = f32[1,4]{1,0} dynamic-slice(a, i, z), dynamic_slice_sizes={1,4}",
    before=SUM,
    header=FOUR,
)
_ALL_TO_ALL = entry(
    "p = f32[4,4]{1,0} parameter(0)",
    "ROOT r = f32[4,4]{1,0} all-to-all(p), channel_id=1, replica_groups={{0,1,2,3}}, "
    "dimensions={0}",
    header=FOUR,
)
_STARTED = entry(
    P,
    Q,
    "s = f32[8]{0} all-reduce-start(p), channel_id=1, replica_groups={{0,1,2,3}}, "
    "use_global_device_ids=true, to_apply=sum",
    "m = f32[8]{0} multiply(p, q)",
    "d = f32[8]{0} all-reduce-done(s)",
    "ROOT r = f32[8]{0} add(d, m)",
    before=SUM,
    header=FOUR,
)
_DOT = entry(
    SQUARE,
    "q = f32[6,6]{1,0} parameter(1)",
    "ROOT r = f32[6,6]{1,0} dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
)
_CONVOLUTION = entry(
    "p = f32[1,8,2]{2,1,0} parameter(0)",
    "k = f32[3,2,4]{2,1,0} parameter(1)",
    "ROOT r = f32[1,8,4]{2,1,0} convolution(p, k), window={size=3 pad=1_1}, "
    "dim_labels=b0f_0io->b0f",
)
_WINDOW = entry(
    "p = f32[8]{0} parameter(0)",
    "z = f32[] constant(0)",
    "ROOT r = f32[8]{0} reduce-window(p, z), window={size=3 pad=1_1}, to_apply=sum",
    before=SUM,
)
_PAIR = entry(
    P,
    Q,
    "a = f32[8]{0} add(p, q)",
    "b = f32[8]{0} multiply(p, q)",
    "ROOT r = (f32[8]{0}, f32[8]{0}) tuple(a, b)",
)

PLACES = (
    case(
        "slice off by one",
        unary("ROOT r = f32[32]{0} slice(p), slice={[0:32]}"),
        "[0:32]",
        "[1:33]",
    ),
    case(
        "slice of every other one",
        unary("ROOT r = f32[32]{0} slice(p), slice={[0:32]}"),
        "[0:32]",
        "[0:64:2]",
    ),
    case("reduce along another dimension", REDUCE, "dimensions={0}", "dimensions={1}"),
    case(
        "transpose dropped",
        entry(SQUARE, "ROOT r = f32[6,6]{1,0} transpose(p), dimensions={1,0}"),
        "dimensions={1,0}",
        "dimensions={0,1}",
    ),
    case(
        "concatenated the other way round",
        entry(P, Q, "ROOT r = f32[16]{0} concatenate(p, q), dimensions={0}"),
        "(p, q)",
        "(q, p)",
    ),
    case(
        "padded at the other end",
        entry(P, "z = f32[] constant(0)", "ROOT r = f32[10]{0} pad(p, z), padding=2_0"),
        "padding=2_0",
        "padding=0_2",
    ),
    case(
        "broadcast along another dimension",
        entry("p = f32[6]{0} parameter(0)", "ROOT r = f32[6,6]{1,0} broadcast(p), dimensions={0}"),
        "dimensions={0}",
        "dimensions={1}",
    ),
    case(
        "dot contracts another dimension",
        _DOT,
        "rhs_contracting_dims={0}",
        "rhs_contracting_dims={1}",
    ),
    case("convolution padded at one end", _CONVOLUTION, "pad=1_1", "pad=2_0"),
    case("reduce-window padded at one end", _WINDOW, "pad=1_1", "pad=2_0"),
    case("results swapped, as by another alias", _PAIR, "tuple(a, b)", "tuple(b, a)"),
    case("read behind an update in place", _UPDATE, "slice(p), slice", "slice(n), slice"),
    case(
        "update without clamping its index",
        _UPDATE,
        "  n = f32[8]{0} dynamic-update-slice(p, u, i)\n",
        "  z = s32[] constant(0)\n"
        "  b = pred[] compare(i, z), direction=GE\n"
        "  bs = pred[8]{0} broadcast(b), dimensions={}\n"
        "  c = f32[8]{0} dynamic-update-slice(p, u, i)\n"
        "  n = f32[8]{0} select(bs, c, p)\n",
    ),
    case(
        "gather that wraps around its indices",
        _GATHER,
        "  ROOT r = f32[6,4]{1,0} gather(p, i)",
        "  ten = s32[] constant(10)\n"
        "  tens = s32[6]{0} broadcast(ten), dimensions={}\n"
        "  w = s32[6]{0} remainder(i, tens)\n"
        "  ROOT r = f32[6,4]{1,0} gather(p, w)",
    ),
    case(
        "scatter that clamps its indices",
        _SCATTER,
        "  ROOT r = f32[10]{0} scatter(p, i, u)",
        "  lo = s32[] constant(0)\n"
        "  hi = s32[] constant(9)\n"
        "  w = s32[6]{0} clamp(lo, i, hi)\n"
        "  ROOT r = f32[10]{0} scatter(p, w, u)",
    ),
    # -- devices
    case("other replica groups", _REDUCED, "{{0,1},{2,3}}", "{{0,2},{1,3}}"),
    case("all-gather in another order", _GATHERED, "{{0,1,2,3}}", "{{0,1,3,2}}"),
    case("permute to another device", _PERMUTED, "{2,3},{3,0}", "{3,2},{2,0}", "{1,2}", "{1,3}"),
    case("reduce-scatter of another dimension", _ALL_TO_ALL, "dimensions={0}", "dimensions={1}"),
    case("shard of the replica", _SCATTERED, "partition-id()", "replica-id()"),
    case(
        "asynchronous reduction of another operand",
        _STARTED,
        "all-reduce-start(p)",
        "all-reduce-start(q)",
    ),
)
