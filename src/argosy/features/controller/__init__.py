"""`argosy controller`: the engine and the add-ons as a process."""
