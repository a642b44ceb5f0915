"""The list of Applications and bulk actions."""
