"""Pairs of modules of which it is known what belongs together, and how a matching is judged."""
