"""The modules whose whole form golden tests hold compute what they did before the pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.passes.checked_run import run_checked

from hloopt.equivalence import Reference, RunSettings
from hloopt.text import parse_module, print_module

BACKWARD = {
    "pipelining_direction": "backward",
    "should_allow_control_dependencies": True,
    "should_allow_loop_variant_parameter_in_chain": True,
}
MARKS = [
    {"should_process": ("all-gather",), "last_run": False},
    {"level_to_operate_on": 1, "last_run": False},
    {"level_to_operate_on": 2},
]


@pytest.mark.parametrize(
    ("name", "file", "rounds"),
    [
        ("all-gather-bcast-reorder", "whole", [{}]),
        ("all-gather-combiner", "whole", [{}]),
        ("all-gather-cse", "whole", [{}]),
        ("all-reduce-contiguous", "whole", [{}]),
        ("all-reduce-folder", "whole", [{}]),
        ("all-reduce-reassociate", "whole", [{"reassociate_converted_ar": True}]),
        ("all-reduce-simplifier", "whole", [{}]),
        ("all-reduce-splitter", "whole", [{}]),
        ("collective-permute-decomposer", "whole", [{}]),
        ("collective-pipeliner", "whole_forward", [{}]),
        ("collective-pipeliner", "whole_forward", [{"reuse_pipelined_op_buffer": True}]),
        ("collective-pipeliner", "whole_backward", [BACKWARD]),
        ("collective-pipeliner", "whole_sink", [{"pipelining_direction": "forward-sink"}]),
        ("collective-pipeliner", "merged", [{}]),
        ("collective-pipeliner", "merged", [{"pipelining_direction": "forward-sink"}]),
        ("collective-pipeliner", "marks", MARKS),
        ("reduce-scatter-creator", "whole", [{}]),
        ("reduce-scatter-reassociate", "whole", [{}]),
        ("while-loop-all-reduce-code-motion", "whole", [{"enable_reduce_scatter": True}]),
    ],
)
def test_the_module_computes_the_same(
    name: str, file: str, rounds: list[dict[str, Any]], root: Path
) -> None:
    text = (root / f"tests/golden/passes/{name}/{file}.hlo").read_text(encoding="utf-8")
    reference = Reference(parse_module(text), RunSettings())
    for options in rounds:
        module = run_checked(name, text, **options)
        text = print_module(module)
    assert reference.compare(module) is None
