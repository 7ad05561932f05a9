"""Rules for what moves elements: shapes, slices, indices, layouts and types."""
