"""Passes that write dots with other dimensions."""
