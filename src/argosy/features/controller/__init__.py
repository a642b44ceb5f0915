"""`argosy controller`: the engine and add-ons."""
