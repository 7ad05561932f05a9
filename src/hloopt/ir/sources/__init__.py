"""The lines of the user's program that instructions came from."""
