"""`argosy account`, sign-in and sessions: accounts, their tokens and passwords."""
