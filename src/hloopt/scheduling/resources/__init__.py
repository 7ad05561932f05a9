"""The operations that are asynchronous, the resources they occupy, and hints about their place."""
