"""The time products take: measured ones, those of other types, and what XLA:GPU takes for one.

Figures are what XLA:GPU's compiler (jaxlib 0.10.2) said of such instructions, in microseconds.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hloopt.analysis.latency import Origin, Time
from hloopt.analysis.latency.matmul_tables import Matmul
from hloopt.analysis.latency.matmuls import MatmulTimes
from hloopt.analysis.latency.speed_of_light import SpeedOfLightModel
from hloopt.ir import Instruction
from hloopt.targets import Target, load_target
from hloopt.targets.performance import load_tables
from hloopt.text import parse_module


@pytest.fixture(scope="module")
def h100() -> Target:
    return load_target("h100_sxm")


def cycles(times: MatmulTimes, product: Matmul) -> float:
    time = times.of(product)
    assert time is not None
    assert time.origin is Origin.MATMUL_TABLE
    return time.cycles


def test_measured_products_have_their_throughput(h100: Target) -> None:
    assert h100.gpu is not None
    rates = load_tables(str(h100.gpu.tables)).matmuls["bf16xbf16->bf16"]
    times = MatmulTimes(h100)
    largest = Matmul(4, 4096, 4096, 4096, "bf16", "bf16", "bf16")
    assert cycles(times, largest) == pytest.approx(largest.flops / rates[-1] * 1e6)
    beyond = cycles(times, largest._replace(m=1 << 20))
    assert beyond == pytest.approx(256 * cycles(times, largest))


def test_between_measured_products_near_ones_weigh_more(h100: Target) -> None:
    times = MatmulTimes(h100)

    def rate(m: int) -> float:
        product = Matmul(1, m, 4096, 4096, "bf16", "bf16", "bf16")
        return product.flops / cycles(times, product)

    low, middle, high = rate(1024), rate(1536), rate(2048)
    assert middle == pytest.approx((low + high) / 2, rel=1e-4)
    assert abs(rate(1100) - low) < abs(rate(1100) - high)


MEASURED = Matmul(1, 512, 512, 512, "bf16", "bf16", "bf16")


@pytest.mark.parametrize(
    ("product", "on_h100", "on_b200"),
    [
        (Matmul(1, 8, 4096, 4096, "bf16", "bf16", "f32"), 41.056, 26.374),
        (Matmul(3, 700, 900, 1100, "bf16", "bf16", "f32"), 389.454, 244.094),
        (Matmul(3, 700, 900, 1100, "f16", "f16", "f16"), 98.3028, 76.5463),
        (Matmul(16, 1, 128, 2048, "f8e4m3fn", "f8e4m3fn", "f32"), 2.872, 2.6525),
        (Matmul(1, 5000, 333, 64, "f8e5m2", "f8e5m2", "bf16"), 15.1188, 13.6207),
        (Matmul(2, 3000, 17, 9000, "f64", "f64", "f64"), 1573.22, 954.32),
        (Matmul(1, 512, 512, 512, "s4", "s4", "s4"), 39.936, 39.68),
        (Matmul(1, 1, 1, 512, "bf16", "bf16", "f32"), 0.0035, 0.00325),
        (MEASURED, 6.16, None),
    ],
)
def test_products_take_what_xla_says(
    product: Matmul, on_h100: float, on_b200: float | None
) -> None:
    for target, expected in (("h100_sxm", on_h100), ("b200", on_b200)):
        if expected is not None:
            times = MatmulTimes(load_target(target))
            assert cycles(times, product) == pytest.approx(expected, rel=4e-6)


def test_other_types_have_the_time_of_bf16_of_as_many_bytes(h100: Target) -> None:
    times = MatmulTimes(h100)
    wide = MEASURED._replace(m=256, n=256, k=256, result="f32")
    assert cycles(times, wide) == pytest.approx(8 * cycles(times, MEASURED))
    for types in (("f16", "f16"), ("f8e5m2", "f8e5m2"), ("s8", "bf16")):
        other = wide._replace(lhs=types[0], rhs=types[1])
        assert cycles(times, other) == cycles(times, wide)


def test_without_tables_products_run_at_the_rates_of_the_target(h100: Target) -> None:
    assert h100.gpu is not None
    times = MatmulTimes(replace(h100, gpu=replace(h100.gpu, tables=None)))
    large = Matmul(1, 8192, 8192, 8192, "s8", "s8", "s32")
    arithmetic = 2 * 8192**3 / (0.8 * 1978.9e12) * 1e6
    found = times.of(large)
    assert found is not None
    assert found.origin is Origin.RATES
    assert found.cycles == pytest.approx(arithmetic)
    assert times.by_table(large) is None
    traffic = 512 * 512 * (1 + 1 + 4) / 3352.32e9 * 1e6
    small = times.of(Matmul(1, 512, 512, 512, "s8", "s8", "s32"))
    assert small is not None
    assert small.origin is Origin.RATES
    assert small.cycles == pytest.approx(traffic)


A, B = "a = bf16[256,512] parameter(0)", "b = bf16[512,1024] parameter(1)"
BODY = f"{A}\n{B}\n"
DOT = "[256,1024] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
NUMBERS = (
    '"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"],'
    '"lhs_batch_dimensions":[],"rhs_batch_dimensions":[]'
)


def only(entry: str, callee: str = "") -> Instruction:
    """The root of a module."""
    return parse_module(f"HloModule m\n{callee}\nENTRY e {{\n{BODY}ROOT {entry}\n}}").entry.root


def fusion(body: str, result: str, kind: str | None = "__triton_gemm") -> Instruction:
    """A custom fusion of `body`, of the kind that its backend is told."""
    config = ""
    if kind is not None:
        config = f', backend_config={{"fusion_backend_config":{{"kind":"{kind}"}}}}'
    entry = f"f = {result} fusion(a, b), kind=kCustom, calls=c{config}"
    return only(entry, f"c {{\n{BODY}{body}\n}}")


def time_of(instruction: Instruction, target: Target) -> float:
    return SpeedOfLightModel(target).node_cost(instruction)


WIDE, NARROW, NO_PRODUCT = 71.04, 6.128, 0.01


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("__triton_gemm", WIDE),
        ("__triton_nested_gemm_fusion", WIDE),
        ("__cublas_fusion", NO_PRODUCT),
        ("__triton", NO_PRODUCT),
        (None, NO_PRODUCT),
    ],
)
def test_custom_fusions_of_triton_are_products(
    kind: str | None, expected: float, h100: Target
) -> None:
    found = fusion(f"ROOT d = f32{DOT}", "f32[256,1024]", kind)
    assert time_of(found, h100) == pytest.approx(expected)


def test_a_fusion_around_a_product_has_the_type_that_it_writes(h100: Target) -> None:
    narrowed = f"d = f32{DOT}\nROOT c = bf16[256,1024] convert(d)"
    assert time_of(fusion(narrowed, "bf16[256,1024]"), h100) == NARROW
    widened = f"d = bf16{DOT}\nROOT c = f32[256,1024] convert(d)"
    assert time_of(fusion(widened, "f32[256,1024]"), h100) == WIDE
    sliced = f"d = bf16{DOT}\nROOT c = bf16[16,16] slice(d), slice={{[0:16],[0:16]}}"
    assert time_of(fusion(sliced, "bf16[16,16]"), h100) == NARROW
    operands = "x = f32[256,512] convert(a)\ny = f32[512,1024] convert(b)\n"
    converted = f"{operands}ROOT d = f32{DOT.replace('(a, b)', '(x, y)')}"
    assert time_of(fusion(converted, "f32[256,1024]"), h100) == 10.08


def test_a_fusion_of_two_products_is_none(h100: Target) -> None:
    body = f"d = bf16{DOT}\nd2 = bf16{DOT}\nROOT s = bf16[256,1024] add(d, d2)"
    found = SpeedOfLightModel(h100).node_time(fusion(body, "bf16[256,1024]"))
    assert found == Time(NO_PRODUCT, Origin.GUESS)


def test_a_split_contraction_is_a_batch(h100: Target) -> None:
    body = """
      x = bf16[256,8,64] bitcast(a)
      y = bf16[8,64,1024] bitcast(b)
      ROOT d = f32[8,256,1024] dot(x, y), lhs_batch_dims={1}, rhs_batch_dims={0},
        lhs_contracting_dims={2}, rhs_contracting_dims={1}
    """
    batched = MatmulTimes(h100).of(Matmul(8, 256, 1024, 64, "bf16", "bf16", "f32"))
    assert SpeedOfLightModel(h100).node_time(fusion(body, "f32[8,256,1024]")) == batched


@pytest.mark.parametrize(
    ("call", "result", "expected"),
    [
        ("__cublas$lt$matmul", "(f32[256,1024], s8[64])", WIDE),
        ("__cublas$lt$matmul", "bf16[256,1024]", NARROW),
        ("__cublas$lt$matmul$f8", "(bf16[256,1024], s8[64])", NARROW),
        ("__cublas$gemm", "(f32[256,1024], s8[64])", 10.0),
    ],
)
def test_calls_of_the_library_are_products(
    call: str, result: str, expected: float, h100: Target
) -> None:
    config = f'{{"gemm_backend_config":{{"dot_dimension_numbers":{{{NUMBERS}}}}}}}'
    entry = f'f = {result} custom-call(a, b), custom_call_target="{call}", backend_config={config}'
    found = only(entry)
    assert time_of(found, h100) == pytest.approx(expected)
    found.set_attribute("backend_config", "{}")
    assert time_of(found, h100) == 10.0


def test_a_product_of_nothing_takes_no_time(h100: Target) -> None:
    entry = """
      x = bf16[4,0] parameter(2)
      y = bf16[0,1024] parameter(3)
      ROOT d = f32[4,1024] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    """
    root = parse_module(f"HloModule m\nENTRY e {{\n{BODY}{entry}\n}}").entry.root
    assert SpeedOfLightModel(h100).node_time(root) == Time(0.0, Origin.MATMUL_TABLE)
