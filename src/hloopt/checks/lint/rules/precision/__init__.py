"""Rules about element types and layouts."""
