"""Mutation testing: small changes of our code, each of which a test should notice."""
