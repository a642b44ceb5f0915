"""Kustomizations that nobody wrote: generated trees, patches, overlays and noise for differential tests."""
