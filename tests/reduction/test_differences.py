"""The modules in differences/ differ on XLA:CPU, each for the reason that its note gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from agreement_lib.recognition import Difference, Rerun, reason_of_difference
from hloopt.cli import main
from hloopt.equivalence import RunSettings
from hloopt.equivalence.agreement import first_difference
from hloopt.equivalence.roles import roles_of
from hloopt.interpreter.values import arrays_of
from hloopt.ir import Module
from hloopt.text import parse_module, print_module
from hloopt.text.print_options import PrintOptions
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
    module = parse_module((_FOLDER / f"{name}.hlo").read_text())
    assert module.instruction_count() >= 30
    assert _reason(module, seed) == _REASONS[name]


@pytest.mark.parametrize("name", _REASONS)
def test_what_it_is_reduced_to_differs_for_the_same_reason(name: str) -> None:
    module = parse_module((_FOLDER / "reduced" / f"{name}.hlo").read_text())
    assert {_reason(module, seed) for seed in range(3)} - {None} == {_REASONS[name]}


@pytest.mark.parametrize("name", _REASONS)
def test_reducing_gives_the_module_that_is_kept(name: str, tmp_path: Path) -> None:
    result = tmp_path / f"{name}.hlo"
    command = ["reduce", str(_FOLDER / f"{name}.hlo"), "--differs-on", "xla", "-o", str(result)]
    assert main(command) == 0
    kept = parse_module((_FOLDER / "reduced" / f"{name}.hlo").read_text())
    found = parse_module(result.read_text())
    assert _canonical(found) == _canonical(kept)


def _canonical(module: Module) -> str:
    return print_module(module, PrintOptions.canonical())


def _reason(module: Module, seed: int) -> str | None:
    """Why the results on these inputs differ; None where they do not."""
    pytest.importorskip("jaxlib", reason="needs the extra xla")
    settings = RunSettings(seeds=1)
    placement = settings.place(module)
    devices = placement.devices
    arguments = settings.arguments(placement, seed, placement.plans(roles_of(placement.program)))
    ours = tuple(arrays_of(settings.interpret(placement, arguments, settings.host(seed))[0]))
    theirs = tuple(arrays_of(run_with_xla(placement.program, arguments, devices)[0]))
    difference = first_difference(ours, theirs)
    if difference is None:
        return None
    output = difference.leaf[0]
    rerun = Rerun(module, arguments, devices, 100_000, 1 << 26)
    found = Difference(0, output, ours[output], theirs[output])
    return reason_of_difference(rerun, found)


def test_every_module_has_a_reason() -> None:
    assert {path.stem for path in _FOLDER.glob("*.hlo")} == _REASONS.keys()
    assert {path.stem for path in (_FOLDER / "reduced").glob("*.hlo")} == _REASONS.keys()
