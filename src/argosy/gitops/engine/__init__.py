"""The engine: watches, queues and workers that keep the Applications of one cluster synced."""
