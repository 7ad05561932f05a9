"""Subcommands: each reads options, calls the library and renders the result."""
