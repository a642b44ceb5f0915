"""Repositories, credentials, certificates and keys of an installation."""
