"""What no model knows, old interfaces, dumps that are not the last one."""

from __future__ import annotations

import pytest
from tests.checks.lint.linting import check, found_names, violations

from hloopt.checks.results import Severity, Verdict


def calls(*attributes: str, more: str = "") -> str:
    lines = [f"  k{n} = f32[8] custom-call(p), {each}" for n, each in enumerate(attributes)]
    given = ", ".join(f"k{n}" for n in range(len(attributes)))
    shapes = ", ".join(["f32[8]"] * len(attributes))
    body = "\n".join(lines)
    return (
        f"HloModule m\n{more}\nENTRY e {{\n  p = f32[8] parameter(0)\n{body}\n"
        f"  ROOT t = ({shapes}) tuple({given})\n}}\n"
    )


KERNEL = 'custom_call_target="kernel"'
OTHER = 'custom_call_target="other"'


def test_each_unknown_target_is_one_note() -> None:
    text = calls(KERNEL, OTHER, KERNEL, 'custom_call_target="Sharding"')
    first, second = violations("HLL701", text)
    assert "2 calls of kernel" in first.message
    assert [each.instruction for each in first.related] == ["k2"]
    assert "1 call of other" in second.message
    assert first.severity is Severity.NOTE
    assert check("HLL701", text).verdict is Verdict.PASSED
    assert violations("HLL701", calls('custom_call_target="Sharding"')) == ()


@pytest.mark.parametrize(
    ("version", "is_found"),
    [
        ("API_VERSION_STATUS_RETURNING", True),
        ("API_VERSION_STATUS_RETURNING_UNIFIED", True),
        ("API_VERSION_TYPED_FFI", False),
        ("API_VERSION_ORIGINAL", False),
        ("", False),
    ],
)
def test_interfaces_that_typed_ffi_replaces(version: str, is_found: bool) -> None:
    attributes = f"{KERNEL}, api_version={version}" if version else KERNEL
    assert found_names("HLL702", calls(attributes)) == ["k0"] * is_found


def test_calls_of_one_target_are_one_finding_and_unreached_ones_none() -> None:
    old = ", api_version=API_VERSION_STATUS_RETURNING"
    (found,) = violations("HLL702", calls(KERNEL + old, KERNEL + old, OTHER))
    assert "2 calls of kernel" in found.message
    unreached = (
        f"u {{\n  a = f32[8] parameter(0)\n  ROOT b = f32[8] custom-call(a), {KERNEL}{old}\n}}"
    )
    assert violations("HLL702", calls(OTHER, more=unreached)) == ()


FUSED = """HloModule m{0}
f {{
  a = f32[64] parameter(0)
  ROOT b = f32[64] negate(a)
}}
ENTRY e {{
  p = f32[64] parameter(0)
  ROOT r = f32[64] {1}
}}
"""
START = """HloModule m{0}
ENTRY e {{
  p = f32[64] parameter(0)
  s = (f32[64], f32[64], u32[]) copy-start(p)
  ROOT d = f32[64] copy-done(s)
}}
"""


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        (FUSED.format("", "fusion(p), kind=kLoop, calls=f"), True),
        (FUSED.format(", is_scheduled=true", "fusion(p), kind=kLoop, calls=f"), False),
        (FUSED.format("", "negate(p)"), False),
        (START.format(""), True),
        (START.format(", is_scheduled=true"), False),
    ],
)
def test_an_optimized_module_is_scheduled(text: str, is_found: bool) -> None:
    assert len(violations("HLL703", text)) == is_found
