"""What can be known of a module without changing it."""
