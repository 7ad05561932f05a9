"""The names of `hloopt.pass_framework.library` that other packages import from here."""

from __future__ import annotations

from hloopt.pass_framework.library import find_pipeline as find_pipeline
