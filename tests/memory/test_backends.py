"""The backend that a module was compiled for."""

from __future__ import annotations

import pytest

from hloopt.memory.backends import BACKENDS, CPU, GPU, TPU, Backend, backend_of, common_backend
from hloopt.text import parse_module


def module(instruction: str = "negate(a)", header: str = "") -> str:
    return (
        f"HloModule m, is_scheduled=true{header}\n"
        f"ENTRY e {{ a = f32[8,8] parameter(0)\n  b = f32[8,8] {instruction}\n"
        "  ROOT c = f32[8,8] sine(b) }\n"
    )


@pytest.mark.parametrize(
    ("text", "backend"),
    [
        (module(), CPU),
        (module(header=', frontend_attributes={fingerprint_before_lhs="a"}'), GPU),
        (module(header=', frontend_attributes={fingerprint="a"}'), CPU),
        (module('negate(a), backend_config={"operation_queue_id":"0"}'), GPU),
        (module('negate(a), backend_config={"fusion_backend_config":{}}'), GPU),
        (module('negate(a), backend_config={"collective_backend_config":{}}'), GPU),
        (module('negate(a), backend_config={"outer_dimension_partitions":["4"]}'), CPU),
        (module('negate(a), metadata={op_name="operation_queue_id"}'), CPU),
        (module('custom-call(a), custom_call_target="__cublas$gemm"'), GPU),
        (module('custom-call(a), custom_call_target="__cudnn$softmax"'), GPU),
        (module('custom-call(a), custom_call_target="__triton"'), GPU),
        (module('custom-call(a), custom_call_target="f__cublas"'), CPU),
        (module('custom-call(a), custom_call_target="__onednn$matmul"'), CPU),
    ],
)
def test_what_only_xla_gpu_writes_tells(text: str, backend: Backend) -> None:
    assert backend_of(parse_module(text)) is backend


def test_one_version_that_tells_is_enough() -> None:
    silent, telling = (
        parse_module(module(header=header))
        for header in ("", ', frontend_attributes={fingerprint_before_lhs="a"}')
    )
    assert common_backend([silent, telling]) is common_backend([telling, silent]) is GPU
    assert common_backend([silent, silent]) is CPU


def test_backends_are_known_by_name() -> None:
    assert BACKENDS == {"cpu": CPU, "gpu": GPU, "tpu": TPU}
