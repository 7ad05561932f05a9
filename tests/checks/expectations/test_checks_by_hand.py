"""Checks that projects write by hand today, as expectations that do not miscount."""

from __future__ import annotations

import pytest
from tests.checks.expecting import STEP, verdict

from hloopt.checks.results import Verdict

WINDOWED = "".join(
    f"""
%windowed_dot_general_body_{name}.{number} (p: f32[8]) -> f32[8] {{
  %p = f32[8]{{0}} parameter(0)
  ROOT %n = f32[8]{{0}} negate(%p)
}}
"""
    for number, name in enumerate(("ag", "ag", "rs"))
)
GEMMS = """  %g = f32[8,8]{1,0} custom-call(%k), custom_call_target="__cublas$lt$matmul$f8"
  ROOT %r ="""
TEXT = STEP.replace("ENTRY", f"{WINDOWED}\nENTRY").replace("  ROOT %r =", GEMMS)
COMMENTED = STEP.replace(
    "  %zero = s32[] constant(0)",
    '  %all-reduce.9 = s32[] constant(7), metadata={op_name="all-reduce( all-gather("}\n'
    "  %zero = s32[] constant(0)",
)


@pytest.mark.parametrize(
    ("expectation", "expected"),
    [
        # MaxText: no all-gather of floats along a dimension; bodies of windowed einsums; GEMMs
        ("collectives(kind=all-gather, dtype=float, attr.dimensions={1}).count == 0", True),
        ("collectives(kind=all-gather, dtype=float, attr.dimensions={0}).count == 0", False),
        ("computations(name=windowed_dot_general_body*).count == 3", True),
        ("computations(name=windowed_dot_general_body_ag*).count == 2", True),
        ("custom_calls(target=__cublas$lt$matmul$f8).count == 1", True),
        ("custom_calls(target=*$f8).count == 2", True),
        # TransformerEngine: exact bytes of each kind, the wrapped one among them
        ("collectives(kind=all-gather).static_bytes == 128B", True),
        ("collectives(kind=all-reduce).static_bytes == 64B", True),
        ("collectives(kind=reduce-scatter).bytes == 0", True),
        # AXLearn: products, shardings of parameters
        ("dots.count == 1", True),
        ("parameters(name=*embed*).sharding == {devices=[4]<=[4]}", True),
        # JAX: exactly one, none of a kind
        ("collectives(kind=all-gather).count == 1", True),
        ("collectives(kind=all-to-all).count == 0", True),
        ("collectives(kind=all-reduce, not in-loop).count == 1", True),
        # pytorch/xla: products in bf16, never in f32
        ("dots(lhs=f32).count == 0", False),
        ("dots(lhs=bf16|f16).count >= 1", False),
    ],
)
def test_checks(expectation: str, expected: bool) -> None:
    assert verdict(expectation, TEXT) is (Verdict.PASSED if expected else Verdict.FAILED)


def test_names_and_metadata_are_no_collectives() -> None:
    assert verdict("collectives.count == 3", COMMENTED) is Verdict.PASSED
    assert verdict("instructions(name=all-reduce*).count == 1", COMMENTED) is Verdict.PASSED
