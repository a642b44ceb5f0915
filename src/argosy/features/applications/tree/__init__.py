"""The tree of objects of an Application."""
