"""Transposing slices of arrays in loops in the place of the arrays before the loops."""
