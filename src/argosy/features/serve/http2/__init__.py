"""HTTP/2 for gRPC: connections and their streams as ASGI requests."""
