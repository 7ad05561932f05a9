"""Law of prints: they are read again, verify, and print the same."""

from __future__ import annotations

import difflib
import re

from hloopt.diagnostics import HloError
from hloopt.ir import Module
from hloopt.ir.async_chains import find_async_start
from hloopt.ir.opcode import ASYNC
from hloopt.text import PrintOptions, parse_module, print_module
from hloopt.text.async_rules import ATTRIBUTES_OF_BOTH
from hloopt.verifier import ANY_TARGET, verify_module

FULL = PrintOptions.formatted()._replace(keep_order=False)
FORMS = {"full": FULL, "default": PrintOptions.default(), "kept": PrintOptions.keep()}
_MADE_UP = re.compile(r"\b(async_wrapped|async_param|async_op|call)(\.\d+)*\b")
_LOST_BY_ROUNDING = ("5.9e-39", "1.2e-38")  # the smallest f8e8m0fnu, printed with two digits
_MINUS_ZERO = re.compile(r"(?<![\w.])-0(?![\w.])")
_SHORT_FORM = re.compile(r" (?!async|copy|send|recv)[\w\-]+-start\(")
_NUMBERED = re.compile(r"(%[a-z][a-z\-]*)(?:\.\d+)+\b")
_FRAMES = re.compile(r"\bstack_frame_id=\d+|^FileNames\n.*?^StackFrames\n[^\n].*?\n\n", re.M | re.S)


class Broken(Exception):
    """A law that does not hold: what, and the texts that show it."""


def check_print(module: Module, options: PrintOptions) -> Module | None:
    """Raise Broken unless a valid module is read back as it is; what was read, if anything."""
    once = print_module(module, options)
    if not options.always_readable and any(i.opcode in ASYNC for i in module.instructions()):
        return None  # of some asynchronous operations XLA's print says too little
    try:
        again = parse_module(once)
    except HloError as error:
        raise Broken("the print is refused", first_line(error), once) from error
    if errors := verify_module(again, ANY_TARGET):
        raise Broken("the print is invalid", first_line(errors[0]), once)
    twice = print_module(again, options)
    # XLA's order of computations follows that of their callers, which a print changes.
    same = twice == once if options.keep_text else _blocks(twice) == _blocks(once)
    if not same and not (
        _is_completed(module) and print_module(parse_module(twice), options) == twice
    ):
        raise Broken("the second print differs", _difference(once, twice))
    return again


def _is_completed(module: Module) -> bool:
    """Whether a reader gives wrapped operations what their asynchronous instructions have.

    XLA's does, too: a print cannot say that only the latter have an attribute.
    """
    for instruction in module.instructions():
        start = find_async_start(instruction) if instruction.opcode in ASYNC else None
        if start is not None and len(start.called) == 1:
            wrapped = start.called[0].root.attributes
            own = instruction.attributes.items()
            if any(key in ATTRIBUTES_OF_BOTH and wrapped.get(key) != value for key, value in own):
                return True
    return False


def first_line(error: HloError) -> str:
    """The first line of its message."""
    return error.message.splitlines()[0] if error.message else ""


def _blocks(text: str) -> list[str]:
    """The parts of a print, without what XLA's print loses too, and names that readers make up.

    XLA's order within a computation follows control dependencies only in part, so lines are
    sorted where no schedule gives them an order.
    """
    # Stack frames are numbered as they are met, so another order gives other numbers.
    text = _FRAMES.sub("", text)
    text = _MADE_UP.sub(r"\1", text).replace(*_LOST_BY_ROUNDING)
    if _SHORT_FORM.search(text):  # the reader names what is wrapped, perhaps as another is named
        text = _NUMBERED.sub(r"\1", text)
    blocks = [block.strip() for block in _MINUS_ZERO.sub("0", text).split("\n\n")]
    if "is_scheduled=true" not in text[: text.find("\n")]:
        blocks = ["\n".join(sorted(block.split("\n"))) for block in blocks]
    return sorted(blocks)


def _difference(once: str, twice: str) -> str:
    lines = difflib.unified_diff(once.splitlines(), twice.splitlines(), lineterm="", n=1)
    return "\n".join(lines)[:5000]
