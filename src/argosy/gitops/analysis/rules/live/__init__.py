"""Rules about what lives: a module a family. In: a live view. Out: sights. Never: asks a cluster."""
