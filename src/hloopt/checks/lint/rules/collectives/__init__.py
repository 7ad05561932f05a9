"""Rules about collectives and transfers between devices."""
