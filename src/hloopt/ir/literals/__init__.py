"""Literals: the values of constants as text and as bits."""
