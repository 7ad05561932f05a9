"""The grammar of selectors and of names of computations, and the forms that check it."""

from __future__ import annotations

import re

from conformance_lib.forms import Form, matching, unknown_words
from hloopt.ir.async_sugar import ASYNC_SUGAR
from hloopt.ir.opcode import OPCODES

STEP = re.compile(r"\.(op|user|called)\((-?\d+)\)$|\.(body|cond|async)$")
ROOT_OF = re.compile(r"root\((.+)\)")
SEARCH = re.compile(r"(find|all)\(([a-z0-9\-]+)(?:@(.+))?\)")
NEW = re.compile(r"new\(([^()]+)\)")
BODY_OR_CONDITION = re.compile(r"(body|cond)\((.+)\)")
CALLED = re.compile(r"called\((.+),\s*(-?\d+)\)")
LEAF = re.compile(r"(.+?)\{(\d+(?:,\d+)*|)\}")
_NAME = re.compile(r"[\w.\-]+")

STEPS = ("op", "user", "called", "body", "cond", "async")
BASES = ("root", "find", "all", "new")
COMPUTATIONS = ("entry", "body", "cond", "called")
_FUTURE_OPCODES = frozenset(("scaled-dot", "topk"))
"""Opcodes of the documents, which a version of hloopt may not have."""


def opcode_problem(name: object) -> str | None:
    """An objection to the name of an opcode."""
    if name in OPCODES or name in ASYNC_SUGAR or name in _FUTURE_OPCODES:
        return None
    reason = unknown_words("opcode", [name], [*OPCODES, *_FUTURE_OPCODES])
    return reason and f"there is no opcode '{name}': {reason}"


def selector_problem(text: str) -> str | None:
    """An objection to the grammar of a selector: names are not looked up."""
    while (match := STEP.search(text)) and not text.startswith("%"):
        text = text[: match.start()]
    if text.startswith("%") or text == "root":
        return None if text != "%" else "'%' names nothing"
    if match := ROOT_OF.fullmatch(text):
        return computation_problem(match[1])
    if match := SEARCH.fullmatch(text):
        reason = opcode_problem(match[2])
        return reason or (computation_problem(match[3]) if match[3] else None)
    if NEW.fullmatch(text):
        return None
    return f"'{text}' is not the base of a selector"


def computation_problem(text: str) -> str | None:
    """An objection to the grammar of the name of a computation."""
    if match := CALLED.fullmatch(text) or BODY_OR_CONDITION.fullmatch(text):
        return selector_problem(match[2] if match.re is BODY_OR_CONDITION else match[1])
    if _NAME.fullmatch(text):
        return None
    return f"'{text}' does not name a computation"


def _leaf_problem(text: str) -> str | None:
    match = LEAF.fullmatch(text)
    return selector_problem(match[1] if match else text)


def _name_problem(text: str) -> str | None:
    return None if text.strip() else "an empty name"


SELECTOR = matching("a selector", selector_problem, (*BASES, *STEPS, *COMPUTATIONS))
LEAF_SELECTOR = matching("a selector with an index", _leaf_problem, (*BASES, *STEPS))
COMPUTATION = matching("a computation", computation_problem, COMPUTATIONS)
OPCODE: Form = matching("an opcode", opcode_problem)
NAME = matching("a name", _name_problem)
