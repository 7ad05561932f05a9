"""Edits that make a module smaller: each offers parts, and applies any subset of them."""
