"""Repositories, repository credentials, certificates and GPG keys."""
