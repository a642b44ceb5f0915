"""`argosy explain`: why an object, a field or an Application is as it is."""
