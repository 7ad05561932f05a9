"""The option cost_model."""

from __future__ import annotations

from typing import Any

import pytest

from hloopt.diagnostics import HloError
from hloopt.memory_space.options.cost_options import CostOptions


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"flops_per_second": -1}, "the cost model has flops_per_second -1"),
        (
            {"fixed_seconds_for_opcode": {"add": -2}},
            "the cost model has fixed_seconds_for_opcode -2",
        ),
    ],
)
def test_nothing_takes_less_than_no_time(options: dict[str, Any], message: str) -> None:
    with pytest.raises(HloError) as caught:
        CostOptions(**options)
    assert caught.value.message == message
    assert caught.value.help == "rates and times are 0 or more"
