"""Thirty rewrites that are right: by passes of ours, and by hand."""

from __future__ import annotations

REWRITES = ()
