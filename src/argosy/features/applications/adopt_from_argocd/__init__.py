"""Hand an Application over from Argo CD to argosy, and back."""
