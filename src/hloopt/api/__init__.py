"""What the Python API has that no other room has: calls that do what a command does."""
