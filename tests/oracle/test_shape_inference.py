"""Shapes that text leaves out are those real XLA infers when it reads the same text."""

from __future__ import annotations

import re
from itertools import product

import pytest

from hloopt.diagnostics import HloError
from hloopt.ir import parse_shape
from hloopt.text import parse_module
from xla_process import DIED, XlaProcess

pytestmark = [pytest.mark.oracle]

FEW = ("f32[]", "f32[2]{0:S(1)}", "f32[<=2]", "f32[?]", "f32[1]", "bf16[2]", "pred[2]", "s4[2]")
MANY = (
    *(*FEW, "f32[3]", "f64[]", "s32[2]", "s4[2]{0:E(4)}", "c64[2]", "f32[2,1]{0,1:T(8,128)}"),
    *("f32[1,<=3]", "f32[?,3]{0,1}", "f32[<=1,1]", "f32[2]{0:E(32)}", "token[]", "b(f32[2])"),
)
PREDICATES = ("pred[]", "pred[2]", "pred[<=2]", "pred[?]", "pred[2]{0:S(1)}", "f32[2]")

QUESTIONS: dict[str, list[tuple[str, tuple[tuple[str, ...], ...]]]] = {
    "unary": [
        (f"{opcode}(%s)", (MANY,))
        for opcode in (
            "negate",
            "abs",
            "not",
            "sine",
            "real",
            "is-finite",
            "sign",
            "cbrt",
            "popcnt",
        )
    ],
    "binary": [
        (f"{opcode}(%s)", (MANY, MANY))
        for opcode in ("add", "subtract", "and", "atan2", "complex", "compare")
    ],
    "select": [("select(%s)", (PREDICATES, FEW, FEW))],
    "clamp": [("clamp(%s)", (FEW, FEW, FEW))],
    "concatenate": [
        ("concatenate(%s), dimensions={0}", (MANY, MANY)),
        ("concatenate(%s), dimensions={0}", (FEW, FEW, FEW)),
    ],
    "arrangement": [
        ("transpose(%s), dimensions={1,0}", (MANY,)),
        ("reverse(%s), dimensions={0}", (MANY,)),
        ("broadcast(%s), dimensions={3}", (MANY,)),
        ("pad(%s), padding=1_2_3", (MANY, MANY)),
        ("set-dimension-size(%s), dimensions={0}", (MANY, ("s32[]", "s64[]", "s32[1]"))),
        ("opt-barrier(%s)", (MANY,)),
        ("copy(%s)", (MANY,)),
    ],
    "contraction": [
        ("dot(%s), lhs_contracting_dims={0}, rhs_contracting_dims={0}", (MANY, MANY)),
        ("dot(%s), lhs_batch_dims={0}, rhs_batch_dims={0}", (MANY, MANY)),
        ("convolution(%s), dim_labels=bf_io->bf", (MANY, ("f32[1,4]", "bf16[3,?]", "f32[?,2]"))),
    ],
    "algebra": [
        ("cholesky(%s)", (("f32[3,3]", "f32[?,3]", "c64[2,3]", "s32[3,3]", "f32[<=3,3]{0,1}"),)),
        ("fft(%s), fft_type=FFT, fft_length={2}", (MANY,)),
        ("fft(%s), fft_type=RFFT, fft_length={2}", (MANY,)),
        ("fft(%s), fft_type=IRFFT, fft_length={2}", (MANY,)),
    ],
}


def module_text(form: str, operands: tuple[str, ...]) -> str:
    parameters = "".join(f"  p{i} = {shape} parameter({i})\n" for i, shape in enumerate(operands))
    names = ", ".join(f"p{i}" for i in range(len(operands)))
    attributes = ", direction=EQ" if form.startswith("compare") else ""
    return f"HloModule m\nENTRY e {{\n{parameters}  ROOT r = {form % names}{attributes}\n}}\n"


@pytest.mark.parametrize("family", QUESTIONS)
def test_xla_infers_the_same_shape_or_refuses_too(family: str, xla: XlaProcess) -> None:
    texts = [
        module_text(form, operands)
        for form, choices in QUESTIONS[family]
        for operands in product(*choices)
    ]
    answers = [xla.read(text, style="default") for text in texts]
    inferred = sum(answer.text is not None for answer in answers)
    assert 0 < inferred < len(answers), "both verdicts occur"
    died = sum(answer.error == DIED for answer in answers)
    assert died * 20 < len(answers), "XLA dies often: ask it otherwise"
    differences = [
        (text, theirs, ours)
        for text, answer in zip(texts, answers, strict=True)
        if answer.error != DIED
        and (ours := infer(text)) != (theirs := answer.text and root_shape(answer.text))
    ]
    assert not differences, differences[:3]


def infer(text: str) -> str | None:
    try:
        return parse_module(text).entry.root.shape.text
    except HloError:
        return None


def root_shape(printed: str) -> str:
    root = re.search(r"ROOT %r = (\S+) ", printed)
    assert root is not None, printed
    return parse_shape(root[1]).text
