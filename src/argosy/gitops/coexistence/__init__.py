"""Coexistence with Argo CD: detects it, which Applications it delivers, and its server addresses."""
