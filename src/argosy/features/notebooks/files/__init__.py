"""Behind `argosy notebook`, as far as it needs no cluster: run, judge, compare and report notebooks that are files."""
