"""The heap of temporaries: what is allocated and freed when, and at which offset."""
