"""Collectives and transfers: which devices meet, which wait, and the results."""
