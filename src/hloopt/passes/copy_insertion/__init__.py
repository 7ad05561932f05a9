"""Copies that make a module legal for buffer assignment."""
