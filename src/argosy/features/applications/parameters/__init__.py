"""Parameters of the sources of an Application."""
