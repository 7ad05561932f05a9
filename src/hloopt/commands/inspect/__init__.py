"""Commands that show parts of a module."""
