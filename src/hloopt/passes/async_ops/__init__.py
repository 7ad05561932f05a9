"""Passes that make operations asynchronous, or synchronous again."""
