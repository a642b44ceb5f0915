"""Behind `argosy doctor`: reads an installation and its Applications, and says what is wrong. Rules are in `advise`."""
