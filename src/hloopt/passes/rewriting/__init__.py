"""Steps of rewriting that several passes share."""
