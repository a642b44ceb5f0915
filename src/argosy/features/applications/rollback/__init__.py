"""History of an Application, and rollback to one of its entries."""
