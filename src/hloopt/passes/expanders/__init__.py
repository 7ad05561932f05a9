"""Passes that replace an operation by others that every backend has."""
