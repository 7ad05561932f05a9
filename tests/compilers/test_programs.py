"""Programs as compilers are given them: devices, partitioning, options."""

from __future__ import annotations

from pathlib import Path

import pytest

from hloopt.compilers.flags import Flags
from hloopt.compilers.programs import Program
from hloopt.diagnostics import HloError
from hloopt.proto import decode, encode
from hloopt.proto.schema import message
from hloopt.text import parse_module, print_module

PLAIN = """HloModule m{}

ENTRY %e {{
  %p = f32[8]{{0}} parameter(0)
  ROOT %r = f32[8]{{0}} {}
}}
"""
SHARDED = PLAIN.format("", "negate(%p), sharding={devices=[4]0,1,2,3}")
MLIR = b"module @jit_f attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 2 : i32} {}"


@pytest.mark.parametrize(
    ("text", "devices", "shape", "is_partitioned"),
    [
        (PLAIN.format("", "negate(%p)"), None, (1, 1), True),
        (PLAIN.format("", "negate(%p)"), 4, (1, 4), True),
        (PLAIN.format(", replica_count=2", "negate(%p)"), None, (2, 1), True),
        (PLAIN.format(", replica_count=2", "negate(%p)"), 8, (8, 1), True),
        (PLAIN.format(", replica_count=2, num_partitions=3", "negate(%p)"), 8, (2, 4), True),
        (SHARDED, None, (1, 4), False),
        (SHARDED.replace("HloModule m", "HloModule m, num_partitions=4"), None, (1, 4), False),
    ],
)
def test_devices_of_a_module(
    text: str, devices: int | None, shape: tuple[int, int], is_partitioned: bool
) -> None:
    program = Program.of(parse_module(text), devices)
    assert (program.replicas, program.partitions) == shape
    assert program.is_partitioned == is_partitioned
    assert program.form == "hlo"


def test_jaxlib_sees_the_shardings_of_shardy_alone() -> None:
    """Any other makes it give the program to GSPMD, which knows none of Shardy's calls."""
    sdy = 'frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{}]>"}'
    of_both = SHARDED.replace("parameter(0)", f"parameter(0), sharding={{devices=[4]<=[4]}}, {sdy}")
    for header, kept in ((", frontend_attributes={xla.sdy.meshes={mesh = x}}", 1), ("", 2)):
        module = parse_module(of_both.replace("HloModule m", f"HloModule m{header}"))
        before = print_module(module)
        code = Program.of(module).code_for_jaxlib().decode()
        assert code.count(" sharding={devices=") == kept
        assert sdy in code
        assert print_module(module) == before


def test_devices_that_do_not_fit_the_replicas() -> None:
    module = parse_module(PLAIN.format(", replica_count=2, num_partitions=3", "negate(%p)"))
    with pytest.raises(HloError, match="7 devices cannot be 2 replicas"):
        Program.of(module, 7)


def test_stablehlo_says_how_many_devices(tmp_path: Path) -> None:
    path = tmp_path / "step.mlir"
    path.write_bytes(MLIR)
    program = Program.read(str(path))
    assert (program.replicas, program.partitions, program.form) == (2, 4, "mlir")
    assert not program.is_partitioned
    assert program.code() == program.code_for_jaxlib() == MLIR
    assert not program.uses_shardy
    path.write_bytes(b"sdy.mesh @mesh = <['x'=4]>\nmodule {}")
    assert Program.read(str(path), 4).uses_shardy
    path.write_bytes(b" \n")
    with pytest.raises(HloError, match="is empty"):
        Program.read(str(path))


def test_code_is_the_module() -> None:
    module = parse_module(PLAIN.format("", "negate(%p)"))
    program = Program.of(module)
    assert print_module(decode(program.code())) == print_module(decode(encode(module)))
    assert "negate" in program.code_for_jaxlib().decode()


def test_groups_of_a_mesh_are_written_out_for_jaxlib() -> None:
    """XLA's way from HLO to MLIR and back makes other groups of them."""
    gather = (
        "all-gather(%p), channel_id=1, dimensions={0}, use_global_device_ids=true, "
        "replica_groups=mesh['x'=2,'y'=2] {'y'}"
    )
    text = PLAIN.format(", num_partitions=4", gather).replace(
        "ROOT %r = f32[8]", "ROOT %r = f32[16]"
    )
    program = Program.of(parse_module(text))
    assert "replica_groups={{0,1},{2,3}}" in program.code_for_jaxlib().decode()


def test_options_assign_devices_replicas_first() -> None:
    module = parse_module(PLAIN.format(", replica_count=2, num_partitions=3", "negate(%p)"))
    options = message("CompileOptionsProto").FromString(Program.of(module).compile_options())
    build = options.executable_build_options
    assert (build.num_replicas, build.num_partitions, build.use_spmd_partitioning) == (2, 3, True)
    assignment = build.device_assignment
    assert (assignment.replica_count, assignment.computation_count) == (2, 3)
    rows = [list(each.replica_device_ids) for each in assignment.computation_devices]
    assert rows == [[0, 3], [1, 4], [2, 5]]


def test_flags() -> None:
    flags = Flags.of(["xla_a=1", "--xla_b", "xla_a=2", "xla_empty="])
    flags.set_default("xla_a", "3")
    flags.set_default("xla_c", "4")
    flags.append("xla_list", "x")
    flags.append("xla_list", "y")
    assert flags.text() == "--xla_a=2 --xla_b=true --xla_empty= --xla_c=4 --xla_list=x,y"
    for text in ("a=1", "xla_a =1", "xla_a=1 xla_b=2", "", "-xla_a"):
        with pytest.raises(HloError, match="is no flag of XLA"):
            Flags.of([text])


def test_constants_without_values_are_zeros() -> None:
    text = PLAIN.format("", "add(%p, %c)").replace(
        "  ROOT", "  %c = f32[8]{0} constant({...})\n  %d = s32[2,3]{0,1} constant({...})\n  ROOT"
    )
    program = Program.of(parse_module(text))
    assert program.elided == 2
    found = print_module(decode(program.code()))
    assert "constant({0, 0, 0, 0, 0, 0, 0, 0})" in found
    assert "constant({ { 0, 0, 0 }, { 0, 0, 0 } })" in found
    assert "constant({...})" in program.code_for_jaxlib().decode()  # its parser makes some up
