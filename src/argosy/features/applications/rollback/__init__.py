"""History of an Application, and the rollback to an entry of it."""
