"""Checks of modules for CI: verdicts, violations with their places, and what they rest on."""
