"""Original values (`origin=…`) of instructions that move into their caller."""

from __future__ import annotations

from hloopt.patterns import pattern

_NAME = pattern(r'\{\s*"([^"\\]*+(?:\\.[^"\\]*+)*+)"')
_SYNTHETIC_CALL = pattern(r"\{\s*\[\s*synthetic_call\s*\]\s*\}")
_FIRST_LEAF = pattern(r'[\s{(]*\{\s*(?:"([^"\\]*+(?:\\.[^"\\]*+)*+)"|\})')


def value_in_caller(value: str, call: str | None) -> str | None:
    """The original value of an inlined instruction whose own is `value`.

    `call` is the original value of the call. None: the caller's part of the name is not known,
    so the whole value is dropped.
    """
    if call is None:
        return None
    if _SYNTHETIC_CALL.fullmatch(call):
        return value
    leaf = _FIRST_LEAF.match(call)
    if leaf is None or leaf[1] is None:
        return None
    return _NAME.sub(lambda match: f'{{"{leaf[1]}/{match[1]}"', value)
