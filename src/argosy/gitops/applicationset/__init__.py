"""Reports ApplicationSets that no controller expands."""
