"""Who asks: accounts, tokens, sessions, and what they may."""
