"""What pages and the API both look at, and under the same rules: neither of the two doors knows the other."""
