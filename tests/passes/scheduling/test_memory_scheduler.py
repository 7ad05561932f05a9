"""The passes that schedule, on the modules of XLA's own tests of them."""

from __future__ import annotations

import pytest

from hloopt.ir import Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

TUPLES = """HloModule tuples
ENTRY entry {
  lit = f32[6]{0} constant({1, 1, 1, 1, 1, 1})
  abs_const = f32[6]{0} abs(lit)
  abs_abs1 = f32[6]{0} abs(abs_const)
  tuple = (f32[6]{0}) tuple(abs_abs1)
  tuple_elm = f32[6]{0} get-tuple-element(tuple), index=0
  abs_abs2 = f32[6]{0} abs(abs_const)
  ROOT add = f32[6]{0} add(tuple_elm, abs_abs2)
}
"""
SEND = """HloModule module
ENTRY entry {
  %p = f32[1000, 1000] parameter(0)
  %token.0 = token[] after-all()
  %send = (f32[1000, 1000], u32[], token[]) send(%p, %token.0), channel_id=1, is_host_transfer=true
  %n1 = f32[1000, 1000] negate(%p)
  %n2 = f32[1000, 1000] negate(%n1)
  %n3 = f32[1000, 1000] negate(%n2)
  %send-done = token[] send-done(%send), channel_id=1, is_host_transfer=true
}
"""
FUSION = """HloModule multi_output
fused_computation {
  q0 = f32[5]{0} parameter(0)
  q1 = f32[5]{0} parameter(1)
  q2 = f32[5]{0} parameter(2)
  fadd = f32[5]{0} add(q0, q1)
  fmul = f32[5]{0} multiply(fadd, q2)
  ROOT ftuple = (f32[5]{0}, f32[5]{0}) tuple(fadd, fmul)
}
ENTRY entry {
  c1 = f32[5]{0} constant({1, 1, 1, 1, 1})
  c2 = f32[5]{0} constant({1, 2, 3, 4, 5})
  c3 = f32[5]{0} constant({0, 2, 4, 6, 8})
  fusion = (f32[5]{0}, f32[5]{0}) fusion(c1, c2, c3), kind=kLoop, calls=fused_computation
  tuple_elm = f32[5]{0} get-tuple-element(fusion), index=0
  exp = f32[5]{0} exponential(c3)
  ROOT root_add = f32[5]{0} add(tuple_elm, exp)
}
"""


def scheduled(text: str, name: str, **options: object) -> Module:
    module = parse_module(text)
    create_pass(name, options).run(module, PassContext(name))
    return module


@pytest.mark.parametrize(
    ("text", "pointer_size", "first", "second"),
    [
        (SEND, 8, "send-done", "n1"),
        (TUPLES, 1, "abs_abs2", "tuple"),
        (FUSION, 2, "exp", "fusion"),
    ],
    ids=["send", "tuples", "fusion"],
)
def test_the_list_scheduler_counts_what_is_freed(
    text: str, pointer_size: int, first: str, second: str
) -> None:
    module = scheduled(text, "hlo-memory-scheduler", algorithm="list", pointer_size=pointer_size)
    names = [instruction.name for instruction in module.entry.instructions]
    assert module.is_scheduled
    assert names.index(first) < names.index(second)


def test_bodies_of_fusions_keep_their_order() -> None:
    module = scheduled(FUSION, "hlo-memory-scheduler", algorithm="bfs")
    body = module.computations["fused_computation"]
    assert [i.name for i in body.instructions] == ["q0", "q1", "q2", "fadd", "fmul", "ftuple"]


def test_a_module_that_keeps_its_schedule_is_unchanged() -> None:
    module = scheduled(TUPLES, "hlo-memory-scheduler", algorithm="dfs")
    version = module.version
    scheduler = create_pass("hlo-memory-scheduler", {"algorithm": "dfs"})
    context = PassContext()
    assert not scheduler.run(module, context)
    assert module.version == version
    assert context.statistics == {"computations reordered": 0}
