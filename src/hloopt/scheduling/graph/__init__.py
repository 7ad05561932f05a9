"""The nodes of a computation, and the edges that every order of it must respect."""
