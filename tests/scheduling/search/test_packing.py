"""Orders whose buffers pack worse are not taken."""

from __future__ import annotations

import pytest
from tests.scheduling.test_search import scheduling_of

from hloopt.ir import Instruction, Module
from hloopt.memory.assignment import BufferAssignment
from hloopt.scheduling.search.module_search import search_module
from hloopt.scheduling.search.packing import Packing
from hloopt.scheduling.search_options import SearchOptions
from hloopt.text import parse_module

LARGE = 1 << 18
TEXT = f"""
HloModule m, is_scheduled=true
work {{ w.x = f32[{LARGE}] parameter(0) ROOT w.z = f32[{LARGE}] negate(w.x) }}
ENTRY e {{
  p = f32[{LARGE}] parameter(0)
  a = f32[{LARGE}] fusion(p), kind=kOutput, calls=work
  b = f32[1] slice(a), slice={{[0:1]}}
  c = f32[{LARGE}] fusion(p), kind=kOutput, calls=work
  d = f32[1] slice(c), slice={{[0:1]}}
  ROOT r = f32[1] add(b, d)
}}
"""


def in_order(module: Module, names: str) -> list[Instruction]:
    named = {i.name: i for i in module.entry.instructions}
    return [named[name] for name in names]


def allocated(module: Module, order: list[Instruction]) -> int:
    orders = {c: list(c.instructions) for c in module.computations.values()}
    orders[module.entry] = order
    return sum(a.size for a in BufferAssignment.of(module, orders=orders).allocations)


def test_an_order_that_needs_another_buffer_does_not_fit() -> None:
    module = parse_module(TEXT)
    one, two = in_order(module, "pabcdr"), in_order(module, "pacbdr")
    more = allocated(module, two) - allocated(module, one)
    assert more > 2 * LARGE
    packing = Packing(module)
    assert not packing.fits(module.entry, two)
    assert packing.fits(module.entry, in_order(module, "pcdabr"))
    assert Packing(module, allocated(module, two)).fits(module.entry, two)
    assert [i.name for i in module.entry.instructions] == list("pabcdr")


def test_64_kib_are_rounding() -> None:
    for size, fits in ((1 << 13, True), (1 << 15, False)):
        module = parse_module(TEXT.replace(str(LARGE), str(size)))
        assert Packing(module).fits(module.entry, in_order(module, "pacbdr")) is fits


def test_of_large_modules_a_thousandth_is_rounding() -> None:
    module = parse_module(TEXT.replace(str(LARGE), str(1 << 15)))
    rest = "large = f32[1073741824] parameter(1)\n  p = f32[32768] parameter(0)"
    text = TEXT.replace(str(LARGE), str(1 << 15)).replace(
        "p = f32[32768] parameter(0)\n  a", rest + "\n  a"
    )
    large = parse_module(text)
    assert not Packing(module).fits(module.entry, in_order(module, "pacbdr"))
    names = ["large", *"pacbdr"]
    named = {i.name: i for i in large.entry.instructions}
    assert Packing(large).fits(large.entry, [named[name] for name in names])


@pytest.mark.parametrize("does_fit", [True, False])
def test_the_search_asks_for_each_better_order(
    does_fit: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """HloModule m, is_scheduled=true
f { x = f32[8] parameter(0) ROOT y = f32[8] negate(x) }
ENTRY e {
  p = f32[8] parameter(0)
  a = f32[8] fusion(p), kind=kOutput, calls=f
  q = f32[8] negate(p)
  s.1 = (f32[8], f32[16]) all-gather-start(p), replica_groups={}, dimensions={0}
  d.1 = f32[16] all-gather-done(s.1)
  c = f32[8] slice(d.1), slice={[0:8]}
  s.2 = (f32[8], f32[16]) all-gather-start(a), replica_groups={}, dimensions={0}
  d.2 = f32[16] all-gather-done(s.2)
  w = f32[8] fusion(p), kind=kOutput, calls=f
  v = f32[8] fusion(a), kind=kOutput, calls=f
  u = f32[8] fusion(c), kind=kOutput, calls=f
  ROOT r = (f32[16], f32[8], f32[8], f32[8], f32[8]) tuple(d.2, w, v, u, q)
}"""
    scheduling = scheduling_of(text)
    (computation,) = scheduling.computations()
    by_name = {i.name: i for i in computation.instructions}
    names = ["p", "a", "q", "s.1", "d.1", "c", "s.2", "d.2", "w", "v", "u", "r"]
    computation.reorder([by_name[name] for name in names])
    monkeypatch.setattr(Packing, "fits", lambda *_: does_fit)
    before = [i.name for i in computation.instructions]
    outcome = search_module(
        scheduling.scheduler, scheduling.computations(), SearchOptions(iterations=3000)
    )
    assert [finding.is_better for finding in outcome.findings] == [does_fit]
    assert (before == [i.name for i in computation.instructions]) is not does_fit
