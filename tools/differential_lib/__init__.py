"""The parts of tools/random_differential.py."""
