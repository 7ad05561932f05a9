"""Passes say truly whether they changed the module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hloopt.diagnostics import HloError, PassRefused
from hloopt.ir import Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import PASSES, create_pass
from hloopt.text import parse_module, print_module
from hloopt.verifier import verify_module

if TYPE_CHECKING:
    from tests.conftest import Sample

    from corpus import CorpusEntry
from tests.commands.opt.passes_for_tests import TEXT


def assert_claims_honest(pass_: Any, module: Module) -> None:
    """A pass says that it changed the module exactly if it did, or refuses to do anything."""
    before = print_module(module)
    try:
        claim = pass_.run(module, PassContext(pass_.name))
    except PassRefused:
        return
    if pass_.name in _ALWAYS_CHANGE:
        assert claim is True
        return
    assert claim is (print_module(module) != before), f"{pass_.name} says {claim}"


_ALWAYS_CHANGE = {"copy-insertion"}
"""Passes that always say that they changed the module, as XLA's do."""

_NEEDED: dict[str, dict[str, object]] = {
    "memory-search": {"target": "h100_sxm", "iterations": 2, "memory_limit": 64},
    "overlap-search": {"target": "h100_sxm", "iterations": 2},
    "rematerialization": {"memory_limit_bytes": 0, "recompute": True},
}
"""Options of passes that do not run without."""


def test_a_lie_is_found_out() -> None:
    with pytest.raises(AssertionError, match="lies says False"):
        assert_claims_honest(create_pass("lies"), parse_module(TEXT))
    assert_claims_honest(create_pass("dce"), parse_module(TEXT))


@pytest.mark.slow
def test_all_passes_say_truly_whether_they_changed_the_module(
    corpus_entries: list[CorpusEntry], sample: Sample
) -> None:
    names = [name for name in sorted(PASSES) if PASSES[name].startswith(".")]
    assert "cse" in names
    tried = 0
    entries = sample.of([e for e in corpus_entries if e.verdict == "ok"], 250)
    for entry in entries:
        text = entry.text()
        try:
            if verify_module(parse_module(text)):
                continue
        except HloError:
            continue
        for name in names:
            module = parse_module(text)
            pass_ = create_pass(name, _NEEDED.get(name))
            assert_claims_honest(pass_, module)
            assert_claims_honest(pass_, module)  # and again on its own result
        tried += 1
    assert tried > 0.6 * len(entries)
