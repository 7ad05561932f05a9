"""The pages of docs/ that are written from declarations, examples and tests."""
