"""Passes that decide in which memory values live."""
