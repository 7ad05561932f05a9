"""Predicates: what a module has to show to be looked at further."""
