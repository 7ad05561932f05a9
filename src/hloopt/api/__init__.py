"""Calls of the Python API that do what a command does."""
