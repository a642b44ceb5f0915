"""`argosy promote`: a release goes from one environment to the next, through gates."""
