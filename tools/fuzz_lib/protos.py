"""Checks of any proto: an answer or an HloError, and a text and a proto that come back."""

from __future__ import annotations

import random

from fuzz_lib.checks import State, check_module
from fuzz_lib.proto_mutations import mutated_proto
from hloopt.diagnostics import HloError, render_error
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import without_packing
from hloopt.proto import decode, encode
from hloopt.text import parse_module, print_module
from hloopt.verifier import verify_module
from sweep_lib.findings import Problem, TooSlow
from sweep_lib.prints import FULL, Broken, first_line


def broken_proto(dice: random.Random, text: str) -> bytes:
    """The proto of a text with broken fields; empty where the text has no proto, or a huge one."""
    try:
        module = parse_module(text)
        if verify_module(module):
            return b""
        data = encode(module)
    except HloError:
        return b""
    return mutated_proto(dice, data) if len(data) <= _LARGEST else b""


_LARGEST = 16 << 20
"""Bytes of a proto. Constants left out of a text may be 80 MB in one, for which the limits of time
and memory are not meant."""


def check_proto(data: bytes) -> tuple[str, Problem | None]:
    """The outcome for a proto (refused, invalid, valid), and the first promise that is broken."""
    state = State()
    try:
        try:
            module = decode(data)
        except HloError as error:
            render_error(error)
            return state.outcome, None
        for constant in module.instructions(Opcode.CONSTANT):
            constant.shape = without_packing(constant.shape)  # XLA prints `E(n)`, and reads none
        check_module(module, state)
        if state.outcome == "valid":
            state.step = "encode"
            again = decode(encode(module))
            if errors := verify_module(again):
                raise Broken("the proto is invalid", first_line(errors[0]))
            texts = [print_module(m, FULL) for m in (module, again)]
            if sorted(texts[0].split("\n")) != sorted(texts[1].split("\n")):
                raise Broken("the proto is another module", *texts)
    except Broken as error:
        return state.outcome, Problem(
            f"proto, {state.step}: {error.args[0]}", "\n".join(error.args)
        )
    except (Exception, TooSlow) as error:
        return state.outcome, Problem.of(f"proto, {state.step}", error)
    return state.outcome, None
