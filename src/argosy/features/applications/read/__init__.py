"""Read Applications: list, get, resources, tree, history and events."""
