"""Values in host memory that keep one layout from where they go there to where they come back."""
