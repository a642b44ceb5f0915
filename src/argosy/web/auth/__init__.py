"""Authentication and accounts: passwords, tokens, sessions, SSO."""
