"""Passes, one file each, and what runs them."""
