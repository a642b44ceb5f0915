"""`argosy promote`: promotes releases from one environment to the next, through gates."""
