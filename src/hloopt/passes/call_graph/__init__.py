"""Passes around calls: inlining, splitting, flattening, merging equal computations."""
