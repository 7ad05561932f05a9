"""Passes that make a program smaller and compute the same."""
