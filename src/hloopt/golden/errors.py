"""The error of tests that cannot be run."""

from __future__ import annotations

from hloopt.diagnostics import HloError


class GoldenError(HloError):
    """A golden test that cannot be run: no RUN line, or one we cannot read."""
