"""What `hloopt explain HLO016` says of converting StableHLO does it."""

from __future__ import annotations

import contextlib
import io
import re
import textwrap
from pathlib import Path

import pytest

from hloopt.explanations import explain
from hloopt.text import parse_module
from hloopt.text.foreign import NotHlo
from hloopt.verifier import verify_module

jax = pytest.importorskip("jax", reason="needs the extra xla")


@pytest.mark.parametrize("form", ["text", "bytecode"])
def test_the_script_that_converts_a_file(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jit = jax.jit(lambda x: jax.numpy.tanh(x @ x).sum())
    shape = jax.ShapeDtypeStruct((8, 8), jax.numpy.float32)
    if form == "text":
        data = jit.lower(shape).as_text().encode()
        with pytest.raises(NotHlo, match="StableHLO"):
            parse_module(data.decode())
    else:
        from jax import export

        data = export.export(jit)(shape).mlir_module_serialized
    monkeypatch.chdir(tmp_path)
    Path("module.mlir").write_bytes(data)
    explanation = explain("HLO016")
    assert explanation is not None
    script = re.search(r"^    from jaxlib.*?(?=^\S)", explanation.text, re.M | re.S)
    assert script is not None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(textwrap.dedent(script[0]), {})
    assert verify_module(parse_module(printed.getvalue())) == []


def test_the_calls_of_jax_that_the_help_names() -> None:
    lowered = jax.jit(lambda x: x + 1).lower(1.0)
    assert verify_module(parse_module(lowered.compile().as_text())) == []
    assert verify_module(parse_module(lowered.as_text(dialect="hlo"))) == []
