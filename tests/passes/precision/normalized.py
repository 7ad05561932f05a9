"""Running float-normalization on a text, and its result in short."""

from __future__ import annotations

import re
from typing import Any

from tests.passes.checked_run import shown
from tests.properties.consistency import assert_consistent

from hloopt.ir import Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module
from hloopt.verifier import VerifierOptions, verify_module

MIXED = VerifierOptions(allow_mixed_precision=True)
CONTRACTED = "lhs_contracting_dims={0}, rhs_contracting_dims={0}"
SUM = "sum { a = bf16[] parameter(0) b = bf16[] parameter(1) ROOT c = bf16[] add(a, b) }"


def normalize(
    text: str, *, name: str = "float-normalization", changes: bool = True, **options: object
) -> Module:
    """What the pass makes of a module, valid before and after but for mixed precision.

    A second run, and one on the same module printed, find nothing more to do.
    """
    module = parse_module(text)
    assert verify_module(module, MIXED) == []
    made = create_pass(name, options)
    assert made.run(module, PassContext()) == changes
    assert verify_module(module, MIXED) == []
    assert_consistent(module)
    assert not made.run(module, PassContext())
    assert not made.run(parse_module(print_module(module)), PassContext())
    return module


def entry(body: str, *callees: str, header: str = "") -> str:
    parameters = "x = bf16[4] parameter(0) y = f32[4] parameter(1) i = s32[4] parameter(2)"
    called = "\n".join(callees)
    return f"HloModule m{header}\n{called}\nENTRY e {{ {parameters}\n{body} }}"


def lines(module: Module) -> list[str]:
    """The entry without its parameters; what the pass added is called c0, g1, t2, … in order."""
    text = "\n".join(line for line in shown(module.entry) if " parameter(" not in line)
    made = re.findall(r"\b((?:convert|get-tuple-element|tuple)[.\d]*) = ", text)
    short = {name: f"{name[0]}{number}" for number, name in enumerate(made)}
    return re.sub(r"[\w.\-]+(?!\()", lambda word: short.get(word[0], word[0]), text).split("\n")


def support(**rules: Any) -> dict[str, Any]:
    """Rules by which tuples may hold all, and other operations what is given."""
    tuples = ["tuple", "get-tuple-element"]
    return {
        "float_support": {
            name: {**rule, "opcodes": [*tuples, *rule.get("opcodes", ())]}
            for name, rule in {"operand": {}, "output": {}, "mixed": {}, **rules}.items()
        }
    }
