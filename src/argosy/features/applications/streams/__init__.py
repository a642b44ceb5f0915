"""API streams of Applications and their resource trees."""
