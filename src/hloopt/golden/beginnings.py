"""The first lines of a new golden test, and of a folder of tests that LLVM's `lit` runs."""

from __future__ import annotations

import shlex
from pathlib import Path

from hloopt.golden.errors import GoldenError
from hloopt.golden.filecheck import MARKER
from hloopt.golden.run_line import has_run_line


def begin_test(path: Path, passes: str, pipelines: tuple[str, ...]) -> str:
    """The text of a module as a test of passes, without CHECK lines yet.

    Raises GoldenError for a file that is a test already, or no text.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise GoldenError(
            f"{path} is not UTF-8 text",
            help=f"a test is a file with HLO text: hloopt fmt {path} -o test.hlo",
        ) from None
    if has_run_line(text):
        raise GoldenError(
            f"{path} has a RUN line: it is a test already",
            help=f"hloopt test --update-all {path} writes its CHECK lines",
        )
    words = [word for name in pipelines for word in ("-p", name)]
    words += ["--passes", passes] if passes else []
    return f"// RUN: hloopt opt %s {shlex.join(words)} | filecheck %s\n{MARKER}\n{text}"


LIT_CONFIG = '''"""Lets LLVM's lit run the golden tests here; made by `hloopt test --lit-config`."""

import importlib.util
import os
import sys

import lit.formats


config.name = "hloopt"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".hlo", ".hlotest", ".mlir"]
hidden = [name for name in os.listdir(os.path.dirname(__file__)) if name.startswith(".")]
config.excludes = ["inputs", *hidden]
config.environment["COLUMNS"] = "120"
for switch in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE"):
    config.environment.pop(switch, None)

for command, module in {
    "hloopt": "hloopt",
    "hlo-opt": "hloopt.hlo_opt",
    "filecheck": "hloopt.golden",
    "FileCheck": "hloopt.golden",
}.items():
    # Not within a path or the name of a module.
    pattern = rf"(?<![\\w./=-]){command}(?![\\w./=-])"
    config.substitutions.append((pattern, f"{sys.executable} -m {module}"))

for feature, module in {"jax": "jax", "proto": "google.protobuf", "xla": "jaxlib"}.items():
    try:
        if importlib.util.find_spec(module):
            config.available_features.add(feature)
    except ModuleNotFoundError:
        pass
'''
"""A `lit.cfg.py` with the commands of RUN lines, which run with the Python that runs lit."""
