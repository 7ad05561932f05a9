"""docs/json.md names the keys at the top of what each command writes, and no others."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click
import pytest
from tests.commands.profiled import KERNELS, PROFILE
from tests.commands.test_conventions import COMMANDS
from tests.compilers.fake_xla import install
from tests.dumps.dump_maker import write_dump
from tests.sharding.fake_partitioner import install as install_partitioner
from tests.sharding.sharding_pairs import paths_of

from hloopt.cli import main

MODULE = """HloModule m, is_scheduled=true
ENTRY e {
  p = f32[8] parameter(0)
  q = f32[8] negate(p)
  ROOT r = f32[8] negate(q)
}
"""
OTHER = MODULE.replace("negate(q)", "sine(q)")
WRONG = MODULE.replace("q = f32[8]", "q = f32[4]")

LINES = {
    "calibrate": ["calibrate kernels.hlo --profile p.pbtxt --target tpu_v5p"],
    "memory": ["memory a.hlo"],
    "config": ["config"],
    "cost": ["cost a.hlo"],
    "cost --latency": ["cost a.hlo --latency"],
    "schedule": ["schedule a.hlo"],
    "schedule --explain": ["schedule a.hlo --explain q"],
    "analyze call-graph": ["analyze call-graph a.hlo"],
    "analyze loops": ["analyze loops a.hlo"],
    "analyze overlap": ["analyze overlap a.hlo b.hlo"],
    "analyze reachability": ["analyze reachability a.hlo p r"],
    "analyze replication": ["analyze replication a.hlo"],
    "reduce": ["reduce a.hlo --report instructions(opcode=negate).count>=1 -o small.hlo"],
    "bisect": ["bisect dead.hlo --passes dce --report instructions(opcode=negate).count==0"],
    "opt": ["opt a.hlo --passes cse --opt-limit 1 -o out.hlo"],
    "optimize": ["optimize a.hlo --target h100_sxm --iterations 1 -o out.hlo"],
    "expect": ["expect a.hlo memory.peak<=1KiB"],
    "lint": ["lint a.hlo"],
    "lint --list": ["lint --list"],
    "fingerprint": ["fingerprint a.hlo b.hlo"],
    "dumps": ["dumps dump --no-cache"],
    "dumps --passes": ["dumps dump --module jit_step --passes --no-cache"],
    "dumps --track": ["dumps dump --module jit_step --track %dot.1 --no-cache"],
    "grep": ["grep a.hlo negate"],
    "sharding explain": ["sharding explain whole.hlo part.hlo"],
    "sharding show": ["sharding show whole.hlo"],
    "sharding what-if": ["sharding what-if whole.hlo --drop %w --target h100_sxm"],
    "show": ["show a.hlo %q --target h100_sxm", "show a.hlo --computation e"],
    "skeleton": ["skeleton a.hlo"],
    "stats": ["stats a.hlo"],
    "tune": ["tune a.hlo --target h100_sxm --preset space.yaml"],
    "xla bisect": ["xla bisect a.hlo --target h100_sxm"],
    "xla compare": ["xla compare a.hlo --target h100_sxm --passes cse --xla-pass dce"],
    "xla compile": ["xla compile a.hlo --target h100_sxm"],
    "xla isolate": ["xla isolate a.hlo --target h100_sxm --pass dce"],
    "xla passes": ["xla passes a.hlo --target h100_sxm"],
    "verify": ["verify wrong.hlo"],
    "diff": ["diff a.hlo b.hlo"],
    "equivalent": ["equivalent a.hlo b.hlo"],
    "numerics": ["numerics a.hlo a.hlo"],
    "run": ["run a.hlo --trace"],
    "passes": ["passes", "passes cse"],
    "pipelines": ["pipelines"],
    "targets": ["targets"],
    "test": ["test golden.hlo"],
    "explain": ["explain", "explain HLO300"],
}


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "json.md").read_text(encoding="utf-8")


def keys_on(page: str, heading: str) -> set[str]:
    """The keys in the first column of the table below a heading; empty without the heading."""
    section = page.partition(f"\n{heading}\n")[2].partition("\n#")[0]
    rows = re.findall(r"^\| (`.*?`) \|", section, re.M)
    return {key for row in rows for key in re.findall(r"`(\w+)`", row)}


def objects(line: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    main([*line.split(), "--format", "json"])
    written = json.loads(capsys.readouterr().out)
    return written if isinstance(written, list) else [written]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("a", MODULE), ("b", OTHER), ("wrong", WRONG), ("kernels", KERNELS)):
        Path(f"{name}.hlo").write_text(text, encoding="utf-8")
    for name, path in zip(("whole", "part"), paths_of("gathered"), strict=True):
        Path(f"{name}.hlo").write_text(Path(path).read_text(encoding="utf-8"), encoding="utf-8")
    Path("dead.hlo").write_text(MODULE.replace("negate(q)", "sine(p)"), encoding="utf-8")
    Path("golden.hlo").write_text(f"// RUN: hloopt verify %s\n{MODULE}", encoding="utf-8")
    Path("p.pbtxt").write_text(PROFILE, encoding="utf-8")
    write_dump(Path("dump"))
    Path("space.yaml").write_text("xla_a: [true]\n", encoding="utf-8")
    install(monkeypatch, tmp_path)
    install_partitioner(monkeypatch)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("command", LINES)
def test_the_page_names_the_keys_of_a_command(
    command: str, page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    written = {key for line in LINES[command] for found in objects(line, capsys) for key in found}
    assert written - keys_on(page, "## Keys") == keys_on(page, f"### {command}")


@pytest.mark.usefixtures("files")
def test_the_page_names_the_keys_of_a_module_of_opt(
    page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (found,) = objects(LINES["opt"][0], capsys)
    (module,) = found["modules"]
    assert module.keys() - keys_on(page, "## Keys") == keys_on(page, "### modules of opt")


def test_each_command_that_writes_json_is_on_the_page() -> None:
    writing = {
        path.removeprefix("hloopt ")
        for path, command in COMMANDS.items()
        for option in command.params
        if option.name == "output_format"
        and isinstance(option.type, click.Choice)
        and "json" in option.type.choices
    }
    assert writing == {command.partition(" --")[0] for command in LINES}
