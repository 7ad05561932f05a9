"""Passes over the precision of numbers: which operations work in which floating-point type."""
