"""The parts of tools/agreement.py."""
