"""Live rules, one module per topic. In: a live view. Out: violations. Never: asks a cluster."""
