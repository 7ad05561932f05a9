"""The tutorial does what it shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.page_examples import assert_printed, blocks, work_in

from hloopt.cli import main

DUMP = "testdata/fsdp_layers_8dev.after_spmd_partitioning.hlo"


def test_the_commands_print_what_is_shown(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    work_in(tmp_path, root, monkeypatch)
    for block in blocks(root, "tutorial.md", "console"):
        assert_printed(block, capsys)


@pytest.mark.oracle
def test_the_program_leaves_the_dump(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("jax", reason="needs the extra xla")
    (program,) = blocks(root, "tutorial.md", "python")
    (tmp_path / "layers.py").write_text(program, encoding="utf-8")
    dump, *_ = blocks(root, "tutorial.md", "sh")
    flags = dump.split('"')[1].replace("\\\n", " ")
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    subprocess.run([sys.executable, "layers.py"], cwd=tmp_path, env=environment, check=True)
    (made,) = (tmp_path / "dump").glob("*after_spmd-partitioning*.txt")
    assert main(["diff", str(made), str(root / DUMP), "--ignore", "metadata,header"]) == 0
    capsys.readouterr()
