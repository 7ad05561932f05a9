"""The parts of tools/fuzz.py."""
