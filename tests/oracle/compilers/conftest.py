"""The compiler of XLA:GPU for the tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def plugin() -> list[str]:
    """Options that name it: that of the Python which the oracle is asked with."""
    python = os.environ.get("XLA_GPU_PYTHON")
    if python is None:
        pytest.skip("set XLA_GPU_PYTHON to a Python that has XLA:GPU (oracle/XLA_GPU.md)")
    found = Path(python).parents[1].glob("lib/*/site-packages/jax_plugins/*/xla_cuda_plugin.so")
    return ["--plugin", str(next(found))]
