"""The real Argo CD beside argosy: both deliver the same Applications, and what they made is compared."""
