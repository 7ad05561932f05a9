"""The HLO text format in little texts: what XLA reads we read, and print as it does.

The cases are in hlo_text/: an instruction a line, in a computation with some operands, or a whole
module a line, with ⏎ for a new line. XLA and we must both refuse a case, or print the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from hloopt import HloError, PrintOptions, parse_module, print_module
from hloopt.text.syntax_check import check_syntax

pytestmark = [pytest.mark.oracle]

Print = Callable[[str], str | None]
CASES = Path(__file__).parent / "hlo_text"

_BELOW_THE_SMALLEST_SCALE = (
    "1e-45",
    "1e-46",
    "7e-46",
    "1e-320",
    "5e-324",
    "2.4703282292062328e-324",
)
KNOWN_DIFFERENCES = {
    **{
        f"f8e8m0fnu[] {number}": "prints 2^-127 as 5.9e-39, which it reads as the next larger"
        for number in _BELOW_THE_SMALLEST_SCALE
    },
    # XLA reads what nobody means
    "T(2)(}": "an open tile",
    "T(2}": "an open tile",
    "S(99999999999)": "a memory space beyond 32 bits becomes -1",
    "#(f32)": "prints an index type that it does not read",
    "#(pred)": "prints an index type that it does not read",
    "visualizing_index=0,a=inf}": "",
    "statistics={a=1,visualizing_index=0}": "numbers statistics by their place",
    'origin={{"a\\"b"}}': "prints a quote without its escape",
    "origin={(())}": "drops an empty tuple",
    'origin={({"a"} {"b"})}': "drops the first of two values without a comma",
    'origin={({"a"},)}': "takes a comma behind the last value",
    'origin={({"a"},{"b"}}': "takes an open tuple",
    'backend_config=" {a}"': "prints what reads back without the blank",
    'backend_config="{a} "': "prints what reads back without the blank",
    "profile_type={9}": "knows the numbers of profile types",
    "sparsity_config={lhs={}}": "takes half a sparsity",
    "sparsity_config={lhs={sparsity=1x4 dimension=0}}": "takes half a sparsity",
    "to_apply=g, called_computations={k}": "forgets one of the two",
    "literal=(s32[] 1,)": "takes a comma behind the last value",
    "replica_groups=[2,2]<=[5]": "takes 4 places for 5 devices",
    "x = f32[8,4] all-gather(p), dimensions={0,1}": "takes the first dimension",
    "{devices=[1,1]0}": "prints a single device, but does not read it",
    "{devices=[0,2]<=[0]}": "takes a tile without devices",
    "to_apply={ x = f32[] parameter(0) y = f32[]": "names the outer computation first",
    "f32[4] add(f32[4] negate(f32[4] a), f32[4] b)": "takes 'negate' for a parameter",
    "ulps=99999999999999999999": "ulps beyond 64 bits",
    "s32[<=3] ": "makes the constant static",
    "b(s32[2]) ": "makes the constant an array",
    "{...,1}": "sometimes takes values behind the dots",
    # newer than the released parser
    "bf_io->bf, algorithm=": "a convolution has an algorithm since",
    # XLA dies of it, and nothing is wrong with it
    "x = s32[] partition-id()": "another shape than u32[]",
    "device_ids=(0,1,2,3)": "devices that count up",
    "{'x':(1)2,'x':(2)2}": "",
    # lenient here
    "add(f32[10] a, f32[10] a)": "a single instruction whose shape is inferred",
}


def ours(text: str) -> str | None:
    try:
        module = parse_module(text)
        check_syntax(module)
        return print_module(module, PrintOptions(print_large_constants=True))
    except HloError as error:
        if error.location is None:
            pytest.fail(f"no place for: {error.message}")
        return None


def check(texts: dict[str, str], xla_print: Print) -> None:
    """`texts` by the case that each is made of."""
    different: list[str] = []
    for case, text in texts.items():
        theirs, mine = xla_print(text), ours(text)
        if (theirs or "").strip() != (mine or "").strip():
            different.append(case)
    unknown = [case for case in different if not any(known in case for known in KNOWN_DIFFERENCES)]
    assert not unknown, "\n".join(unknown)


def instructions_of(name: str) -> Iterator[tuple[str, str]]:
    computations = ""
    for line in lines_of(name):
        if line.startswith("computations:"):
            computations = line.partition(":")[2]
            continue
        root = "" if "ROOT" in line else "ROOT "
        yield (
            line,
            (
                f"HloModule m\n{computations}\nENTRY e {{ p = f32[4,4] parameter(0) "
                "q = f32[4,4] parameter(1) v = f32[4] parameter(2) i = s32[] parameter(3) "
                f"t = token[] parameter(4) u = (f32[4,4], s32[]) parameter(5) {root}{line} }}"
            ).replace("⏎", "\n"),
        )


@pytest.mark.parametrize(
    "name", ["names_and_shapes", "common_attributes", "opcode_attributes", "shardings"]
)
def test_instructions_are_read_and_printed_as_xla_does(name: str, xla_print: Print) -> None:
    check(dict(instructions_of(name)), xla_print)


def test_modules_are_read_and_printed_as_xla_does(xla_print: Print) -> None:
    lines = lines_of("modules")
    odd = ["", *(f"HloModule m{c} ENTRY e {{ p = f32[] parameter(0) }}" for c in "\0\x0c\xa0\r\v")]
    check(
        {case: case.replace("⏎", "\n") for case in [*lines, *odd, "\ufeff" + lines[0]]}, xla_print
    )


FLOATS = (
    *("f64", "f32", "f16", "bf16", "f8e5m2", "f8e4m3", "f8e4m3fn", "f8e4m3fnuz", "f8e5m2fnuz"),
    *("f8e4m3b11fnuz", "f8e3m4", "f8e8m0fnu", "f4e2m1fn", "f6e2m3fn", "f6e3m2fn"),
)
INTEGERS = tuple(f"{kind}{bits}" for kind in "su" for bits in (1, 2, 4, 8, 16, 32, 64))


def lines_of(name: str) -> list[str]:
    return (CASES / f"{name}.txt").read_text(encoding="utf-8").splitlines()


def literals(name: str, shapes: Iterable[str]) -> dict[str, str]:
    return {
        f"{shape} {value}": f"ENTRY e {{ ROOT c = {shape} constant({value}) }}"
        for shape, value in itertools.product(shapes, lines_of(name))
    }


@pytest.mark.parametrize("element_type", FLOATS)
def test_floats_are_read_to_the_bit(element_type: str, xla_print: Print) -> None:
    check(literals("float_literals", (f"{element_type}[]",)), xla_print)


def test_integers_and_truth_values_are_read_exactly(xla_print: Print) -> None:
    check(literals("integer_literals", (*(f"{t}[]" for t in INTEGERS), "pred[]")), xla_print)


def test_complex_numbers_are_read_exactly(xla_print: Print) -> None:
    check(literals("complex_literals", ("c64[]", "c128[]")), xla_print)


def test_arrays_and_tuples_are_read_by_their_shape(xla_print: Print) -> None:
    check(literals("nested_literals", lines_of("nested_literal_shapes")), xla_print)


def test_source_lines_are_comments_to_xla(xla_print: Print) -> None:
    text = r"""HloModule m
ENTRY e {
  a = f32[2] parameter(0), metadata={source_file="a*/b.py" source_line=3}
  ROOT b = f32[2] negate(a), metadata={source_file="//model.py" source_line=4}
}"""
    options = PrintOptions.formatted()._replace(inline_source=True)
    printed = print_module(parse_module(text), options)
    assert printed.count("/*source=") == 2
    assert xla_print(printed) == xla_print(text) is not None
