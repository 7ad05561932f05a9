"""Commands about folders and runs over many files."""
