"""Miscompiles planted in small modules, and rewrites that are right."""
