"""Values in a compact layout or in host memory between their uses."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import shown

from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import parse_shape
from hloopt.ir.shapes.shape import Shape
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.rematerialization.sizes import padded_bytes, swap_two_minor_dimensions
from hloopt.text import parse_module
from hloopt.verifier import ANY_TARGET, verify_module

PADDED = {
    "compress": True,
    "size_function": "pad-minor-to-64",
    "compact_shape_function": "swap-two-minor-dimensions",
}
TO_HOST = {
    "host_offload": True,
    "host_memory_space": 5,
    "bandwidth_to_host_bytes_per_second": 4096,
    "bandwidth_from_host_bytes_per_second": 4096,
    "flops_per_second": 1024,
    "transcendentals_per_second": 1024,
}
NARROW = """HloModule m, is_scheduled=true
ENTRY main {
  p = f32[64,2] parameter(0)
  value = f32[64,2] negate(p)
  first = f32[64,2] sine(value)
  second = f32[64,2] cosine(first)
  third = f32[64,2] tanh(second)
  ROOT sum = f32[64,2] add(third, value)
}
"""
LONG = """HloModule m, is_scheduled=true
ENTRY main {
  p = f32[1024] parameter(0)
  value = f32[1024] negate(p)
  first = f32[1024] sine(value)
  second = f32[1024] cosine(first)
  third = f32[1024] tanh(second)
  ROOT sum = f32[1024] add(third, value)
}
"""


def run(text: str, **options: object) -> tuple[list[str], PassContext]:
    module, context = parse_module(text), PassContext("rematerialization")
    create_pass("rematerialization", options).run(module, context)
    assert verify_module(module, ANY_TARGET) == []
    assert Reference(parse_module(text), RunSettings(seeds=2)).compare(module) is None
    return shown(module.entry), context


@pytest.mark.parametrize("algorithm", ["always", "peak-priority"])
def test_a_value_is_compressed_until_its_later_use(algorithm: str) -> None:
    lines, context = run(NARROW, memory_limit_bytes=60_000, algorithm=algorithm, **PADDED)
    assert "value.remat_compressed = f32[64,2] copy(value)" in lines
    assert lines[-2:] == [
        "value.remat_uncompressed = f32[64,2] copy(value.remat_compressed)",
        "ROOT sum = f32[64,2] add(third, value.remat_uncompressed)",
    ]
    (remark,) = (r.reason for r in context.remarks if r.kind == "applied")
    assert remark.startswith("kept in a compact layout for its later users: saves 15,872 bytes")


def test_a_value_is_not_compressed_where_that_needs_the_peak() -> None:
    text = NARROW.replace("second = f32[64,2] cosine(first)", "second = f32[64,2] copy(first)")
    lines, _ = run(text.replace("f32[64,2]", "f32[66,64]"), memory_limit_bytes=1, **PADDED)
    assert not any("compressed" in line for line in lines)


def test_a_value_with_a_placed_alias_is_not_compressed() -> None:
    text = NARROW.replace("first =", "alias = f32[64,2] bitcast(value)\n  first =")
    lines, _ = run(
        text.replace("add(third, value)", "add(third, alias)"), memory_limit_bytes=1, **PADDED
    )
    assert not any("value.remat_compressed" in line for line in lines)


def test_a_value_waits_in_host_memory() -> None:
    lines, context = run(LONG, memory_limit_bytes=12_000, **TO_HOST)
    assert [line.partition(" = ")[0] for line in lines] == [
        *("p", "value", "copy-start", "first", "copy-done", "second", "copy-start.1", "third"),
        *("copy-done.1", "ROOT sum"),
    ]
    assert lines[-1] == "ROOT sum = f32[1024] add(third, copy-done.1)"
    (remark,) = (r.reason for r in context.remarks if r.kind == "applied")
    assert remark.startswith("kept in host memory for its later users: saves 4,096 bytes")


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (LONG, {"bandwidth_to_host_bytes_per_second": 1024}),
        (LONG, {"flops_per_second": None, "transcendentals_per_second": None}),
        (LONG.replace("first =", "alias = f32[1024] bitcast(value)\n  first ="), {}),
        (LONG.replace("first =", "t = (f32[1024], f32[1024]) tuple(value, p)\n  first ="), {}),
    ],
)
def test_a_value_stays_where_nothing_hides_its_transfers_or_another_sees_it(
    text: str, options: dict[str, object]
) -> None:
    lines, _ = run(text, memory_limit_bytes=12_000, **{**TO_HOST, **options})
    assert not any("copy-start(value)" in line for line in lines)


def test_what_only_a_done_may_read_is_not_copied() -> None:
    text = LONG.replace(
        "ENTRY",
        """%sum (a: f32[], b: f32[]) -> f32[] {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY""",
    )
    text = text.replace("sine(value)", "sine(p)")
    text = text.replace("f32[1024] negate(p)", "f32[1024] all-reduce-start(p), to_apply=%sum")
    done = "done = f32[1024] all-reduce-done(value)\n  ROOT"
    text = text.replace(
        "ROOT sum = f32[1024] add(third, value)", f"{done} s = f32[1024] add(third, done)"
    )
    lines, _ = run(text, memory_limit_bytes=1, **TO_HOST)
    assert "done = f32[1024] all-reduce-done(value)" in lines


def test_remarks_on_what_was_made_already_and_on_nested_tuples() -> None:
    later = """
  some = f32[64,2] add(third, value)
  large = f32[64,640] broadcast(z), dimensions={}
  small = f32[64,2] slice(large), slice={[0:64], [0:2]}
  more = f32[64,2] add(small, some)
  ROOT sum = f32[64,2] add(more, value)"""
    text = NARROW.replace("\n  ROOT sum = f32[64,2] add(third, value)", later)
    text = text.replace("  value =", "  z = f32[] parameter(1)\n  value =")
    lines, context = run(text, memory_limit_bytes=1, **PADDED)
    reasons = [remark.reason for remark in context.remarks if remark.kind == "missed"]
    assert any("it was made by rematerialization" in reason for reason in reasons), lines
    nested = """HloModule m, is_scheduled=true
f { x = f32[1024] parameter(0)
  n = f32[1024] negate(x)
  t = (f32[1024]) tuple(n)
  ROOT r = ((f32[1024])) tuple(t) }
ENTRY main {
  p = f32[1024] parameter(0)
  value = ((f32[1024])) fusion(p), kind=kLoop, calls=f
  inner = (f32[1024]) get-tuple-element(value), index=0
  part = f32[1024] get-tuple-element(inner), index=0
  first = f32[1024] sine(part)
  second = f32[1024] cosine(first)
  ROOT sum = f32[1024] add(second, part)
}
"""
    lines, context = run(nested, memory_limit_bytes=1, recompute=True)
    reasons = [remark.reason for remark in context.remarks if remark.kind == "missed"]
    assert any("its result is a tuple in a tuple" in reason for reason in reasons), reasons


def test_too_little_progress_warns_once() -> None:
    work = [f"  a{i} = f32[8] broadcast(q), dimensions={{}}" for i in range(4)]
    sums = [f"  sum{i} = f32[8] add({'last' if not i else f'sum{i - 1}'}, a{i})" for i in range(4)]
    text = "\n".join(
        [
            *("HloModule m, is_scheduled=true", "ENTRY main {", "  q = f32[] parameter(0)"),
            *work,
            "  wide = f32[65536] broadcast(q), dimensions={}",
            "  sine = f32[65536] sine(wide)\n  last = f32[8] slice(sine), slice={[0:8]}",
            *sums,
            "  ROOT end = f32[8] negate(sum3)\n}",
        ]
    )
    _, context = run(text, memory_limit_bytes=1, recompute=True, algorithm="peak-priority")
    (note,) = (note for note in context.notes if "too little" in note)
    assert note.startswith(
        "rematerialization makes too little progress: the peak of %main went from "
    )
    assert note.endswith("; a larger memory_limit_bytes makes it faster")


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ("f32[64,2]{1,0}", 64 * 64 * 4),
        ("f32[64,2]{0,1}", 64 * 2 * 4),
        ("f32[3,65]{1,0}", 3 * 128 * 4),
        ("f32[]", 4),
        ("f32[4,0]{1,0}", 0),
        ("(f32[4], f32[4])", 4),
        ("token[]", 0),
    ],
)
def test_padded_sizes(shape: str, size: int) -> None:
    assert padded_bytes(parse_shape(shape)) == size


@pytest.mark.parametrize(
    ("shape", "compact"),
    [
        ("f32[64,2]{1,0}", "f32[64,2]{0,1}"),
        ("f32[64,2]{0,1}", "f32[64,2]{0,1}"),
        ("f32[2,2]{1,0}", "f32[2,2]{1,0}"),
        ("f32[64]{0}", "f32[64]{0}"),
    ],
)
def test_compact_layouts(shape: str, compact: str) -> None:
    found: Shape = swap_two_minor_dimensions(parse_shape(shape))
    assert found is parse_shape(compact)
