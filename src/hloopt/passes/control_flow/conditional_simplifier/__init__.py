"""Simplifying conditionals: one file per transformation."""
