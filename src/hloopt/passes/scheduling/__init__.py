"""Passes that order instructions, and what prepares them for it."""
