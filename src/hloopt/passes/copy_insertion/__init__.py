"""Copies that make a module legal for buffer assignment."""

from hloopt.passes.copy_insertion.insertion import insert_copies

__all__ = ["insert_copies"]
