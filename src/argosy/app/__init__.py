"""The only place that wires: opens clusters, starts servers and controllers, knows where data is kept."""
