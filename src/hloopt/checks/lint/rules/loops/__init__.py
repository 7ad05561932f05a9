"""Rules about while loops."""
