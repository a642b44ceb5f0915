"""The nouns. Imports nothing of argosy and does no I/O; everything else imports this."""
