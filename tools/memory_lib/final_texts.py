"""Texts after the last pass of XLA:GPU, asked of its compiler where they are not recorded."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from oracle_script import oracle_script


class Compiler:
    """XLA:GPU in an environment of its own, as `oracle/XLA_GPU.md` has it. No GPU is needed."""

    def __init__(self, shared: Path, python: str) -> None:
        self.xla_gpu = oracle_script(shared / "oracle", "xla_gpu")
        self.shared = shared
        self.python = python

    def compile_all(self, texts: Sequence[str], flags: Sequence[str] = ()) -> list[Any]:
        """Compile programs for one device in one process: answers with the text after the last pass
        (`final`) and the buffer assignment (`memory`), empty and None where that failed."""
        results: list[Any] = self.xla_gpu.compile_many(
            list(texts), target="h100_sxm", flags=flags, passes="sanitize", python=self.python
        )
        return results

    def final_text(self, name: str) -> str:
        """Compile the recorded module `MODULE/VARIANT` with the flags of its variant."""
        module, variant = name.split("/")
        folder = self.shared / "oracle" / "gpu" / module
        flags = json.loads((folder / variant / "index.json").read_text())["flags"]
        given = folder / "input.hlo.gz"
        if given.exists():
            text = gzip.decompress(given.read_bytes()).decode()
        else:
            text = (self.shared / "corpus" / "benchmarks" / f"{module}.hlo").read_text()
        hosts_and_devices = module.rpartition("_")[2].split("x")
        result = self.xla_gpu.compile(
            text,
            target="h100_sxm",
            flags=flags,
            devices=math.prod(map(int, hosts_and_devices)),
            passes="sanitize",
            python=self.python,
        )
        return str(result.final)
