"""Moving operations across the border of a conditional: searching, deciding, rewriting."""
