"""What operators see of a running process: metrics, logs and health endpoints."""
