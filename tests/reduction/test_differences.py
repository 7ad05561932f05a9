"""The modules in differences/ differ on XLA:CPU, each for the reason that its note gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from agreement_lib.recognition import Difference, Rerun, reason_of_difference
from hloopt.equivalence.agreement import first_difference
from hloopt.interpreter.inputs import Inputs
from hloopt.interpreter.machine import devices_of, run_module
from hloopt.interpreter.values import arrays_of
from hloopt.text import parse_module
from hloopt.xla.engine import run_with_xla

pytestmark = [pytest.mark.oracle]

_FOLDER = Path(__file__).parent / "differences"
_REASONS = {
    "bf16_sum": "a sum of hundreds of small floats, which XLA:CPU rounds after each step",
    "initial_value": "an initial value that is not neutral, "
    "which XLA:CPU applies once per part or not at all",
    "equal_keys": "an unstable sort of equal keys",
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", _REASONS)
def test_a_module_differs_for_the_reason_that_is_known(name: str, seed: int) -> None:
    pytest.importorskip("jaxlib", reason="needs the extra xla")
    module = parse_module((_FOLDER / f"{name}.hlo").read_text())
    assert module.instruction_count() >= 30
    devices = devices_of(1, 1)
    arguments = [list(Inputs().arguments(module.entry, devices[0], seed))]
    ours = tuple(arrays_of(run_module(module, arguments, devices=devices)[0]))
    theirs = tuple(arrays_of(run_with_xla(module, arguments, devices)[0]))
    difference = first_difference(ours, theirs)
    assert difference is not None
    output = difference.leaf[0]
    rerun = Rerun(module, arguments, devices, 100_000, 1 << 26)
    found = Difference(0, output, ours[output], theirs[output])
    assert reason_of_difference(rerun, found) == _REASONS[name]


def test_every_module_has_a_reason() -> None:
    assert {path.stem for path in _FOLDER.glob("*.hlo")} == _REASONS.keys()
