"""Shapes: element types, layouts, tuples; read from text, written, measured."""
