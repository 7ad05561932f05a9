"""Pairs of modules with known partners, and the judgement of matchings."""
