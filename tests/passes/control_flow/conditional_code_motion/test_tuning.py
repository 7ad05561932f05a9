"""Search configurations of conditional-code-motion."""

from __future__ import annotations

import pytest
from tests.passes.control_flow.conditional_code_motion.programs import (
    PASS,
    V,
    ends,
    program,
    remarks,
    remarks_without_running,
    two,
)

from hloopt.diagnostics import PipelineError
from hloopt.pass_framework.registry import create_pass


def test_a_search_configuration_keeps_what_would_move() -> None:
    text = program(*ends("r = f32[4] negate(s)"))
    found = remarks(text, search_config="0,0,1,1")
    assert found["all"] == "the search configuration keeps tuple"
    assert remarks(text, search_config="0,1,1,1")["r"] == "the search configuration keeps negate"


def test_a_search_configuration_moves_no_side_effects() -> None:
    rest = (
        "k = token[] after-all() i = (f32[4], token[]) infeed(k) "
        "n = f32[4] get-tuple-element(i), index=0 r = f32[4] add(s, n)"
    )
    found = remarks_without_running(program(*ends(rest)), search_config="0,0,0,1")
    assert found["i"] == "it has a side effect, or another part"


@pytest.mark.parametrize("value", ["1,2,3", "a,b,c,d", "0,1,1,1;", "1.5"])
def test_a_search_configuration_has_a_form(value: str) -> None:
    with pytest.raises(
        PipelineError, match="' is not a number, nor numbers index,start,max,stride"
    ):
        create_pass(PASS, {"search_config": value})


def test_search_configurations_are_used_one_after_another() -> None:
    text = program(*two(f"s = {V} {{o}}({{p}}) n = {V} floor(s) r = {V} negate(n)"))

    def kept(value: int | str) -> set[str]:
        found = remarks(text, search_config=value)
        return {name for name, reason in found.items() if "search configuration" in reason}

    assert kept("0,0,1,1") == {"all"}
    assert kept("0,1,1,1") == {"r"}
    assert kept("0,1,1,1;0,0,1,1") == kept("0,1,2,1") == {"r", "h"}
    assert kept("0,0,2,3") == {"all"}
    assert kept("0,2,1,1") == {"n"}
    assert kept("1,0,1,1") == set()
    assert kept(1 << 16 | 1) == kept("0,1,1,0")
    assert kept(2 << 16 | 1 << 32) == kept("0,0,2,1")


def test_a_negative_configuration_tunes_weights() -> None:
    text = program(*two(f"s = {V} {{o}}({{p}}) r = {V} negate(s)"))
    # The weight of %s before %r, and that of %r behind it: without one, moving %r is as good.
    assert "all" not in remarks(text, search_config=-(1 << 16))
    assert remarks(text, search_config=-(1 << 16 | 1))["all"] == "moving it has no benefit"


def test_weights_of_constants_are_not_tuned() -> None:
    constant = "r = f32[4] constant({1,2,3,4})"
    found = remarks(program(constant, constant), search_config=-(1 << 16))
    assert found["all"] == "moving it has no benefit"
