"""Instructions by the work they do."""

from __future__ import annotations

import pytest

from hloopt.reports.look import WORK
from hloopt.reports.work_kinds import WorkKind, work_kind
from hloopt.text import parse_module

MODULE = """HloModule m
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}
plain {
  x = f32[8,8] parameter(0)
  ROOT plain_root = f32[8,8] negate(x)
}
product {
  x = f32[8,8] parameter(0)
  d = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT product_root = f32[8,8] negate(d)
}
outer {
  x = f32[8,8] parameter(0)
  ROOT inner = f32[8,8] fusion(x), kind=kOutput, calls=product
}
scattering {
  x = f32[8,8] parameter(0)
  ROOT scattered = f32[4,8] reduce-scatter(x), replica_groups={{0,1}}, dimensions={0}, to_apply=add
}
copying {
  x = f32[8,8] parameter(0)
  ROOT copied = f32[8,8] copy(x)
}
ENTRY e {
  p = f32[8,8] parameter(0)
  t = token[] after-all()
  negated = f32[8,8] negate(p)
  dot = f32[8,8] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  loop = f32[8,8] fusion(p), kind=kLoop, calls=plain
  gemm = f32[8,8] fusion(p), kind=kOutput, calls=product
  nest = f32[8,8] fusion(p), kind=kOutput, calls=outer
  gathered = f32[16,8] all-gather(p), replica_groups={{0,1}}, dimensions={0}
  ar = f32[8,8] all-reduce-start(p), replica_groups={{0,1}}, to_apply=add
  ard = f32[8,8] all-reduce-done(ar)
  rs = ((f32[8,8]), f32[4,8]) async-start(p), calls=scattering
  rsd = f32[4,8] async-done(rs)
  ac = ((f32[8,8]), f32[8,8]) async-start(p), calls=copying
  acd = f32[8,8] async-done(ac)
  copy = f32[8,8] copy(p)
  sent = (f32[8,8], u32[], token[]) send(p, t), channel_id=1
  sentd = token[] send-done(sent), channel_id=1
  target = f32[8,8] custom-call(p), custom_call_target="f"
  called = f32[8,8] call(p), to_apply=plain
  pair = (f32[8,8], f32[8,8]) tuple(p, copy)
  ROOT first = f32[8,8] get-tuple-element(pair), index=0
}
"""


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("p", WorkKind.VALUE),
        ("t", WorkKind.VALUE),
        ("pair", WorkKind.VALUE),
        ("first", WorkKind.VALUE),
        ("negated", WorkKind.COMPUTE),
        ("loop", WorkKind.COMPUTE),
        ("dot", WorkKind.PRODUCT),
        ("gemm", WorkKind.PRODUCT),
        ("nest", WorkKind.PRODUCT),
        ("gathered", WorkKind.COLLECTIVE),
        ("ar", WorkKind.COLLECTIVE),
        ("ard", WorkKind.COLLECTIVE),
        ("rs", WorkKind.COLLECTIVE),
        ("rsd", WorkKind.COLLECTIVE),
        ("sent", WorkKind.COLLECTIVE),
        ("sentd", WorkKind.COLLECTIVE),
        ("ac", WorkKind.COPY),
        ("acd", WorkKind.COPY),
        ("copy", WorkKind.COPY),
        ("target", WorkKind.CUSTOM_CALL),
        ("called", WorkKind.CONTROL_FLOW),
    ],
)
def test_work(name: str, kind: WorkKind) -> None:
    assert work_kind(parse_module(MODULE)[name]) is kind


def test_every_kind_has_a_look() -> None:
    assert set(WORK) == set(WorkKind)
    assert len({look.fill for look in WORK.values()}) == len(WORK)
    assert len({look.style for look in WORK.values()}) == len(WORK)
