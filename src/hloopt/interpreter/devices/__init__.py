"""What devices do together: who meets whom, who waits, and what comes of it."""
