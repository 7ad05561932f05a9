"""Stages of one compilation compute the same, as `hloopt equivalent` says without being helped."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.jax_dumps.dumps import Dumps

from hloopt.cli import main
from hloopt.equivalence import Comparison, Reference, RunSettings, Tolerance
from hloopt.equivalence.settings import Engine
from hloopt.files import read_module
from hloopt.interpreter.array_files import read_arrays
from hloopt.interpreter.inputs import Inputs
from hloopt.ir import Module, Opcode
from hloopt.preserves import Preserves
from hloopt.xla.engine import run_with_xla

pytestmark = pytest.mark.oracle

PROGRAMS = ("rnn", "transformer", "transformer_bf16", "moe")
ENGINES: dict[str, Engine | None] = {"numpy": None, "xla": run_with_xla}
PAIRS = (
    ("before_optimizations", "after_optimizations"),
    ("after_optimizations", "before_optimizations"),
    ("before_optimizations", "before_partitioning"),
    ("before_partitioning", "after_partitioning"),
    ("after_partitioning", "after_optimizations"),
)


@pytest.fixture(params=PROGRAMS)
def dumps(request: pytest.FixtureRequest, dumps_of: Callable[[str], Dumps]) -> Dumps:
    return dumps_of(request.param)


def examine(before: Module, after: Module, settings: RunSettings | None = None) -> Comparison:
    return Reference(before, settings or RunSettings()).examine(after)


def module_of(dumps: Dumps, stage: str) -> Module:
    if stage not in dumps.stages:
        pytest.skip("a program on one device is not partitioned")
    return read_module(str(dumps.stages[stage]))


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_stages_of_a_compilation_are_equal(dumps: Dumps, before: str, after: str) -> None:
    is_bf16 = dumps.program == "transformer_bf16"
    # Where zeros in bf16 give 0/0 depends on what is computed in more than bf16 meanwhile.
    preserves: Preserves = "finite" if is_bf16 else "rounding"
    left, right = module_of(dumps, before), module_of(dumps, after)
    found = Reference(left, RunSettings()).examine(right, preserves)
    assert found.mismatch is None
    assert all(note.startswith(("inputs with zeros: ", "the signs of")) for note in found.notes)
    assert all(output.not_finite == 0 for output in found.outputs)
    for output in found.outputs:
        if output.absolute is not None:
            assert output.relative is not None
            largest = max(1.0, abs(float(output.absolute.left)))
            assert output.absolute.value < (0.1 if is_bf16 else 1e-5) * largest, output


@pytest.mark.slow
def test_they_are_on_xla_too(dumps: Dumps) -> None:
    settings = RunSettings(seeds=1, engine=run_with_xla)
    before, after = (module_of(dumps, f"{when}_optimizations") for when in ("before", "after"))
    assert examine(before, after, settings).mismatch is None


@pytest.mark.parametrize("before", ["before_optimizations", "after_optimizations"])
def test_inputs_of_jax_are_cut_by_the_shardings_of_parameters(dumps: Dumps, before: str) -> None:
    """Inputs are whole arrays in either order of the modules."""
    stages = ["before_optimizations", "after_optimizations"]
    left, right = (module_of(dumps, stage) for stage in sorted(stages, key=before.__ne__))
    given = read_arrays([str(dumps.folder / "whole_inputs.npz")], left.entry, 8)
    settings = RunSettings(inputs=Inputs(given=given), tolerance=Tolerance(0.02, 0.02))
    found = examine(left, right, settings)
    assert found.mismatch is None
    assert found.seeds == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (" rsqrt(", " sqrt("),
        (" exponential(", " negate("),
        ("constant(0.9)", "constant(0.91)"),
        ("direction=LE", "direction=GT"),
        ("replica_groups=[1,8]<=[8]", "replica_groups=[2,4]<=[8]"),  # sums of half the devices
    ],
)
def test_a_mistake_in_the_optimized_module_is_found(dumps: Dumps, old: str, new: str) -> None:
    """The first place that has it, of those that the result depends on."""
    from hloopt.text import parse_module

    before = module_of(dumps, "before_optimizations")
    text = dumps.stages["after_optimizations"].read_text()
    broken = text.replace(old, new, 1)
    if broken == text:
        pytest.skip("it has no such instruction")
    found = examine(before, parse_module(broken))
    assert found.mismatch is not None


def test_the_command_tells_both_kinds_of_programs(
    dumps_of: Callable[[str], Dumps], capsys: pytest.CaptureFixture[str]
) -> None:
    dumps = dumps_of("transformer")
    paths = [str(dumps.stages[f"{when}_optimizations"]) for when in ("before", "after")]
    assert main(["equivalent", *paths]) == 0
    out = capsys.readouterr().out
    assert out.startswith("equal: 38 outputs, 1 and 8 devices, 3 seeds; ")
    assert max(map(len, out.splitlines())) <= 80, out


def test_an_unpartitioned_program_runs_on_one_device(
    dumps_of: Callable[[str], Dumps], capsys: pytest.CaptureFixture[str]
) -> None:
    for program, devices in (("transformer", 1), ("moe", 8)):
        path = str(dumps_of(program).stages["before_optimizations"])
        assert main(["run", path]) == 0
        assert f"{devices} device" in capsys.readouterr().out
    assert np.prod(read_module(path).entry.parameters[0].shape.dimensions) == 256
    assert any(True for _ in read_module(path).instructions(Opcode.CUSTOM_CALL))
