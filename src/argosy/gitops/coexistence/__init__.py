"""Living beside an Argo CD: whether one runs here, which Applications it delivers, which addresses are its own."""
