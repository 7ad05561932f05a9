"""The inventory of a module: what it has of each kind, and how often that runs."""
