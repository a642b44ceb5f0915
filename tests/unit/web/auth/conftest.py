"""The fixture `room`: accounts, sessions and tokens on an embedded cluster."""

from support.identities import room

__all__ = ["room"]
