"""Modules that are run, and the answers of `hloopt run`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from hloopt.cli import main

STEP = """HloModule step, num_partitions=2

ENTRY e {
  p = f32[2,2]{1,0} parameter(0)
  tokens = s32[3]{0} parameter(1)
  state = (bf16[2]{0}, f8e4m3fn[2]{0}) parameter(2)
  n = f32[2,2]{1,0} negate(p)
  d = u32[] partition-id()
  ROOT r = (f32[2,2]{1,0}, s32[3]{0}, (bf16[2]{0}, f8e4m3fn[2]{0}), u32[])
    tuple(n, tokens, state, d)
}
"""
ODD = """HloModule odd

ENTRY e {
  empty = f32[0,3]{1,0} parameter(0)
  complex = c64[2]{0} parameter(1)
  t = token[] parameter(2)
  nested = ((s4[3]{0}, pred[2]{0}), token[], (f32[<=4]{0})) parameter(3)
  special = f32[4]{0} constant({nan, inf, -inf, 1})
  ROOT r = (f32[0,3]{1,0}, c64[2]{0}, token[], ((s4[3]{0}, pred[2]{0}), token[], (f32[<=4]{0})), f32[4]{0})
    tuple(empty, complex, t, nested, special)
}
"""  # noqa: E501  # a shape is on one line
LOOP = """HloModule loop

always {
  x = s32[] parameter(0)
  ROOT t = pred[] constant(true)
}

next {
  x = s32[] parameter(0)
  one = s32[] constant(1)
  ROOT y = s32[] add(x, one)
}

ENTRY e {
  p = s32[] parameter(0)
  ROOT w = s32[] while(p), condition=always, body=next
}
"""


def entry(*lines: str) -> str:
    body = "".join(f"  {line}\n" for line in lines)
    return f"HloModule m\n\nENTRY e {{\n{body}}}\n"


Capture = pytest.CaptureFixture[str]
Write = Callable[[str], str]


def run_json(path: str, capsys: Capture, *options: str) -> dict[str, Any]:
    assert main(["run", path, "--format", "json", *options]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    found: dict[str, Any] = json.loads(out)
    return found


def refused(capsys: Capture, *arguments: str) -> str:
    """Standard error of a command line that ends with exit code 2."""
    assert main(["run", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    return err
