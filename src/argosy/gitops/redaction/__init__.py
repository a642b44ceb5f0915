"""Finds secret values in texts about Applications, and masks them."""
