"""Passes over loops and conditionals."""
