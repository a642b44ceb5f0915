"""Single objects of an Application: get, patch, delete, run an action."""
