"""Copies that we insert into programs that XLA:CPU compiles need the memory that its own need."""

from __future__ import annotations

from pathlib import Path

import pytest

import copy_agreement

pytestmark = pytest.mark.oracle


def test_temporaries_are_those_of_xla(shared: Path) -> None:
    pytest.importorskip("jaxlib", reason="needs the extra xla")
    assert copy_agreement.main(["--shared", str(shared)]) == 0
