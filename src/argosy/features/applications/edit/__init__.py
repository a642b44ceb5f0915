"""Create and change Applications."""
