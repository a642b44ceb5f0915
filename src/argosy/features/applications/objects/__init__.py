"""Single objects of an Application: read, patch, delete, run an action."""
