"""The operations that XLA:GPU runs beside others: fusions that copy to or from the host."""

from __future__ import annotations

import pytest

from hloopt.analysis.gpu_async import is_gpu_done, is_gpu_start
from hloopt.text import parse_module

DEVICE, HOST = "f32[8]{0}", "f32[8]{0:S(5)}"


def is_asynchronous(operands: tuple[str, ...], result: str, root: str) -> bool:
    """Whether a fusion in an async-start on the thread of its caller is, and so its done."""

    def body(prefix: str) -> str:
        lines = (f"{prefix}{n} = {shape} parameter({n})" for n, shape in enumerate(operands))
        return "\n".join(lines)

    def names(prefix: str) -> str:
        return ", ".join(f"{prefix}{n}" for n in range(len(operands)))

    text = f"""HloModule m
fused {{
{body("f")}
ROOT t = {result} {root}
}}
wrapper {{
{body("w")}
ROOT k = {result} fusion({names("w")}), kind=kLoop, calls=fused
}}
ENTRY e {{
{body("p")}
start = (({", ".join(operands)}), {result}) async-start({names("p")}), calls=wrapper
ROOT done = {result} async-done(start)
}}"""
    named = {i.name: i for i in parse_module(text).entry.instructions}
    begins = is_gpu_start(named["start"])
    assert is_gpu_done(named["done"]) == begins
    return begins


@pytest.mark.parametrize(
    ("operands", "result"),
    [((DEVICE,), HOST), ((HOST,), DEVICE), ((HOST, DEVICE), DEVICE), ((HOST,), HOST)],
)
def test_a_fusion_that_reads_or_writes_an_array_of_the_host(
    operands: tuple[str, ...], result: str
) -> None:
    assert is_asynchronous(operands, result, "negate(f0)")


@pytest.mark.parametrize(
    ("operands", "result", "root"),
    [
        ((DEVICE,), DEVICE, "negate(f0)"),
        ((DEVICE, HOST), DEVICE, "negate(f0)"),
        ((DEVICE,), f"({HOST}, {DEVICE})", "tuple(f0, f0)"),
        ((f"({HOST}, {DEVICE})",), DEVICE, "get-tuple-element(f0), index=1"),
    ],
    ids=["device", "second operand", "tuple of results", "tuple of operands"],
)
def test_only_an_array_of_the_result_or_first_operand_counts(
    operands: tuple[str, ...], result: str, root: str
) -> None:
    assert not is_asynchronous(operands, result, root)
