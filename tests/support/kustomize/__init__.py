"""Generated kustomizations for differential tests: trees, patches, overlays and noise."""
