"""`argosy explain`: explain the state of an object, a field or an Application."""
