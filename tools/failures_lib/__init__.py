"""Planted failures: passes with bugs, modules that show them, and the smallest that do."""
