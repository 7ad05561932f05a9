"""Addresses of alternate memory that are taken, over time."""
