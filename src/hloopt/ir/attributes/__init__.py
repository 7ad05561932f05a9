"""Attributes of instructions: which there may be, how they are read, held and written."""
