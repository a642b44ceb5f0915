"""Events of an Application and of its objects."""
