"""The engine: informers, queue and workers that keep the Applications of one cluster synced."""
