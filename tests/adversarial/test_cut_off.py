"""Texts that are cut off or never closed."""

from __future__ import annotations

import time

import pytest
from tests.adversarial.modules import ADD, entry, messages

_OPENERS = (
    *("{", "(", "[", '"', "'", "\\", '{"', "{'", "/*", "//", "/", "{}", "a={", 'a="', ", a=b"),
    *("%", "<=", "T(", 'mesh["', "b(", "(f32[", '\\"', '{"/*', "x.", "-", "1", "_", "->"),
    *("{[0:1]", "{{0,1},", "{(0, {}),", "{0}: (0, {}),", " ", "\r", "\t", "/**/", "a "),
)
_PLACES = (
    *("%n = f32[4]{0} abs(%p), sharding=X", "%n = f32[4]{0} abs(%p), metadata=X", "%n = X"),
    *("%n = f32[4]{0} abs(X)", "%n = f32[4]{0} abs(%p), X", "X", "%c = f32[4]{0} constant(X)"),
    *("%n = f32[4]{X} abs(%p)", "%n = f32[X] abs(%p)", "%n = f32[4]{0} abs(%p), origin=X"),
    *("%n = f32[4]{0} all-gather(%p), replica_groups=X", "}, execution_thread=X"),
    "%n = f32[4]{0} convolution(%p, %p), dim_labels=X, window=X",
)


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("place", _PLACES)
def test_what_is_never_closed_costs_no_more_than_its_length(place: str, closed: bool) -> None:
    for _ in range(3):  # other work of the machine makes a run slow
        started = time.process_time()
        for opener in _OPENERS:
            text = entry(
                "%p = f32[4]{0} parameter(0)", place.replace("X", opener * (20_000 // len(opener)))
            )
            for message in messages(text if closed else text.rstrip("\n}")):
                assert len(message) < 3000
        seconds = time.process_time() - started
        if seconds < 4:
            break
    # All of them together; quadratic time would be about a second for a single one.
    assert seconds < 4


def test_a_module_cut_off_anywhere_is_answered() -> None:
    text = entry(
        "%p = f32[4]{0} parameter(0), sharding={devices=[2]<=[2]}",
        "%c = (f32[], s32[2]{0}) constant(( 1, {2, 3} ))",
        '%b = f32[4]{0} abs(%p), metadata={op_name="a\\"b"}, backend_config={"a":[1]}',
        "%z = f32[] constant(0)",
        "ROOT %r = f32[] reduce(%b, %z), dimensions={0}, to_apply=%add",
        before=ADD,
    )
    accepted = [text[:length] for length in range(len(text)) if messages(text[:length]) == []]
    # The first computation alone with the white space behind it, and all but the last line end.
    assert accepted == [text[: text.index("}") + extra] for extra in (1, 2, 3)] + [text[:-1]]
