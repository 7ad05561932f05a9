"""`simplify-while-loops`: one module per transformation of a while loop."""
