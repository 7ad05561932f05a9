"""Modules with one call for block-scaled tensors, and what the pass makes of them."""

from __future__ import annotations

from tests.passes.checked_run import run_checked

from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Computation, Opcode
from hloopt.text import parse_module

PASS = "block-scaling-rewriter"


def product(
    lhs: str, rhs: str, scales: str, result: str, *, block: int | None = None, more: str = ""
) -> str:
    """A module with one product; shapes of the scales and of what follows are apart by blanks."""
    shapes = [lhs, rhs, *scales.split()]
    lines = [f"p{n} = {shape} parameter({n})" for n, shape in enumerate(shapes)]
    names = ", ".join(f"p{n}" for n in range(len(shapes)))
    config = f'{{"block_scaled_dot_backend_config":{{"block_size":{block}}}}}'
    attributes = 'custom_call_target="__op$block_scaled_dot"'
    attributes += f", backend_config={config}" if block is not None else ""
    root = f"ROOT product = {result} custom-call({names}), {attributes}{more}"
    return "\n".join(["HloModule m", "ENTRY e {", *lines, root, "}"])


def quantized(source: str, result: str) -> str:
    return (
        f"HloModule m\nENTRY e {{\np = {source} parameter(0)\n"
        f'ROOT q = {result} custom-call(p), custom_call_target="__op$quantize" }}'
    )


def dequantized(values: str, scales: str, result: str) -> str:
    return (
        f"HloModule m\nENTRY e {{\nv = {values} parameter(0)\ns = {scales} parameter(1)\n"
        f'ROOT d = {result} custom-call(v, s), custom_call_target="__op$dequantize" }}'
    )


def expanded(text: str, version: tuple[int, ...] = ()) -> Computation:
    """The computation that the call in a module becomes, which computes the same."""
    module = run_checked(PASS, text, cudnn_version=version)
    assert Reference(parse_module(text), RunSettings(seeds=1)).compare(module) is None
    return module.entry.root.called[0]


def opcodes(computation: Computation) -> list[str]:
    return [i.opcode.value for i in computation.instructions if i.opcode is not Opcode.PARAMETER]


def shapes_of(computation: Computation, opcode: Opcode) -> list[str]:
    return [i.shape.text for i in computation.instructions if i.opcode is opcode]
