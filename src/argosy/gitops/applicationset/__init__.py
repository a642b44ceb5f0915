"""ApplicationSets: what argosy says of them where no controller expands them."""
