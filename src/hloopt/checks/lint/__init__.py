"""Lint: rules that look for what costs time or memory in modules, or is likely a mistake."""
