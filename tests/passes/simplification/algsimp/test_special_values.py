"""Programs that simplifiers are known to miscompile, before and after algsimp."""

from __future__ import annotations

import numpy as np
import pytest
from tests.passes.simplification.algsimp.special_programs import SpecialProgram, special_programs

from hloopt.interpreter.machine import devices_of, run_module
from hloopt.interpreter.values import Array
from hloopt.ir import Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.preserves import PRESERVES, Preserves
from hloopt.text import parse_module
from hloopt.verifier import verify_module

_PROGRAMS = list(special_programs())
_CLOSE = {"f16": 2e-2, "bf16": 1e-1, "f32": 1e-5, "f64": 1e-10}
"""Relative distances of results that only rounding sets apart."""


def test_there_are_more_than_were_reported() -> None:
    texts = {program.text for program in _PROGRAMS}
    assert len(texts) == len(_PROGRAMS) > 337
    assert all(verify_module(parse_module(text)) == [] for text in list(texts)[::50])


@pytest.mark.parametrize("preserve", [p for p in PRESERVES if p != "precision"])
def test_none_is_miscompiled(preserve: Preserves) -> None:
    changed, wrong = 0, []
    for program in _PROGRAMS:
        module = parse_module(program.text)
        with np.errstate(all="ignore"):
            before = _run(module, program)
            if not create_pass("algsimp", {"preserve": preserve}).run(module, PassContext()):
                continue
            changed += 1
            after = _run(module, program)
        if not _agree(program, before, after, preserve):
            wrong.append(program)
    assert [str(w) for w in wrong] == []
    assert changed > 100


def _run(module: Module, program: SpecialProgram) -> Array:
    result = run_module(module, [program.arguments()], devices=devices_of(1, 1))[0]
    assert isinstance(result, np.ndarray)
    return result


def _agree(program: SpecialProgram, before: Array, after: Array, preserve: Preserves) -> bool:
    """Whether results are as equal as is promised: integers always are."""
    if program.type_name not in _CLOSE and before.dtype.kind in "iub":
        return bool(np.array_equal(before, after))
    if preserve == "finite":
        kept = program.ordinary & np.isfinite(before.astype(np.float64))
        before, after = before[kept], after[kept]
    if before.dtype.kind in "iub":
        return bool(np.array_equal(before, after))
    a, b = before.astype(np.float64), after.astype(np.float64)
    if preserve == "bits":
        return bool(np.array_equal(a, b, equal_nan=True) and _signs_agree(a, b))
    close = _CLOSE.get(program.type_name, 0.0)
    return bool(np.allclose(a, b, rtol=close, atol=0.1 * close, equal_nan=True))


def _signs_agree(a: Array, b: Array) -> bool:
    return bool(np.all((np.signbit(a) == np.signbit(b)) | np.isnan(a)))
