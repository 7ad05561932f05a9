"""Inventories: what a module has of a kind, each operation counted once."""
