"""gRPC calls to a program on this machine, through its Unix socket. `unix_socket_call` makes one call."""
