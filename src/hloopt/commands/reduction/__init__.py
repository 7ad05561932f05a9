"""The commands that make modules smaller."""
