"""Many applications on one API server: the world that `bench/scale.py` measures, and its plot."""
