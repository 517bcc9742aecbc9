"""Real networks and real inputs for tests, fetched by name and never committed."""
