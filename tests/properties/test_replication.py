"""Law of the replication analysis: what it calls equal is equal whenever the program runs."""

from __future__ import annotations

from hypothesis import assume, given, settings
from tests.analysis.replication.truth import check_claims
from tests.properties.strategies.spmd_modules import spmd_module_texts

from hloopt.interpreter.errors import RunError
from hloopt.text import parse_module


@given(spmd_module_texts())
@settings(max_examples=150)
def test_values_called_equal_are_equal(text: str) -> None:
    module = parse_module(text)
    for seed in range(2):
        try:
            truth = check_claims(module, seed)
        except RunError:  # devices that wait for each other for ever
            assume(False)
        assert truth.wrong == [], text
