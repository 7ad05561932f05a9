"""Passes that move, merge, split and pipeline collectives."""
