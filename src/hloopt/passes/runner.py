"""The names of `hloopt.pass_framework.runner` that other packages import from here."""

from __future__ import annotations

from hloopt.pass_framework.runner import PipelineRunner as PipelineRunner
