"""Application, AppProject and the addresses that they name, as values."""
