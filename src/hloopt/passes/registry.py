"""The names of `hloopt.pass_framework.registry` that other packages import from here."""

from __future__ import annotations

from hloopt.pass_framework.registry import create_pass as create_pass
