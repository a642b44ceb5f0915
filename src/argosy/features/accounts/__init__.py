"""`argosy account`, login and sessions: accounts, their tokens and passwords."""
