"""Origins of collectives that XLA:CPU's partitioner tells of the programs in JAX, and of dumps."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hloopt.analysis.inventory.collectives import collectives_of
from hloopt.compilers.partitioning import PARTITIONER, partition_alone
from hloopt.dumps.partitioner import partitioner_dumps
from hloopt.files import read_module
from hloopt.ir.attributes.typed import channel_of
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.sources.source_stacks import op_name_of
from hloopt.sharding.explain import explain
from hloopt.sharding.tags import has_same_collectives, origins_by_tag, tagged, told_origins
from hloopt.text import parse_module, print_module

_PROPAGATIONS = {"shardy": True, "gspmd": False}
_DUMPS = f"--xla_dump_to={{}} --xla_dump_hlo_pass_re=^{PARTITIONER}$"
_NAMES = ("convolution", "pipeline", "decoding", "recurrence", "stencil", "experts")
_DEVICES = 8
_TOOLS = Path(__file__).parents[1]


class Pair(NamedTuple):
    """A module on both sides of the partitioner, with the origins of its collectives."""

    name: str
    before: Module
    after: Module
    truth: dict[str, str]


def own_pairs(oracle: Path) -> Iterator[Pair]:
    """The six programs by both propagations, as XLA:CPU partitions them.

    The truth is that of its partitioner alone on tagged text. Where it makes others there, which
    is said on stderr, a program is left out.
    """
    for name in _NAMES:
        for propagation, is_shardy in _PROPAGATIONS.items():
            before, after = _compiled(name, is_shardy)
            copy, tags = tagged(before)
            made = parse_module(_run("alone", str(oracle), given=print_module(copy)))
            truth = _truth(made, after, tags)
            if truth is not None:
                yield Pair(f"{name}.{propagation}", before, after, truth)
            else:
                print(f"{name}.{propagation}: XLA made other collectives alone", file=sys.stderr)


def _truth(made: Module, after: Module, tags: dict[str, Instruction]) -> dict[str, str] | None:
    """The origins of collectives by tags: in their order, or by channels where `made` still has
    some that nothing reads; None where one of a channel is of another kind or shape."""
    if has_same_collectives(made, after):
        known = origins_by_tag(made, after, tags)
        return {collective.name: own.name for collective, own in known.items()}
    others = {channel_of(c.instruction): c.instruction for c in collectives_of(made)}
    truth: dict[str, str] = {}
    for collective in collectives_of(after):
        own = collective.instruction
        other = others.get(channel_of(own))
        if other is None or (other.opcode, other.shape) != (own.opcode, own.shape):
            return None
        if (tag := op_name_of(other)) in tags:
            truth[own.name] = tags[tag].name
    return truth


def _compiled(name: str, is_shardy: bool) -> tuple[Module, Module]:
    """Both sides of the partitioner of a program."""
    with tempfile.TemporaryDirectory(prefix="hloopt-own-") as folder:
        _run("programs", name, flags=_DUMPS.format(folder), is_shardy=is_shardy)
        (first,) = Path(folder).glob("*.before_optimizations.txt")
        paths = partitioner_dumps(folder, first.name.split(".")[1])
        return read_module(str(paths.before)), read_module(str(paths.after))


def _run(
    module: str, *arguments: str, flags: str = "", is_shardy: bool = True, given: str = ""
) -> str:
    """The output of a module beside this one in a process with devices of its own."""
    environment = {
        **os.environ,
        "XLA_FLAGS": f"{flags} --xla_force_host_platform_device_count={_DEVICES}",
        "JAX_PLATFORMS": "cpu",
        "JAX_USE_SHARDY_PARTITIONER": str(is_shardy).lower(),
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    command = [sys.executable, "-m", f"sharding_lib.{module}", *arguments]
    return subprocess.run(
        command,
        env=environment,
        cwd=_TOOLS,
        input=given,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout


def told_exactly(pair: Pair) -> tuple[int, int]:
    """How many origins `hloopt sharding explain --exact` tells of a pair, and how many of them are
    right. Raises HloError and CompilerFailure."""
    copy, tags = tagged(pair.before)
    with tempfile.TemporaryDirectory(prefix="hloopt-exact-") as folder:
        made = partition_alone(copy, Path(folder))
    known = told_origins(made, pair.after, explain(pair.before, pair.after), tags)
    found = {c.name: origin.name for c, origin in known.items() if c.name in pair.truth}
    return len(found), sum(pair.truth[name] == origin for name, origin in found.items())
