"""Events of an Application and of the objects that it owns."""
