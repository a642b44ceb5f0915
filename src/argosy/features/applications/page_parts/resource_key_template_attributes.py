"""Base class that exposes the parts of a ResourceKey as attributes for templates.

In: –. Out: KeyProperties. Never: anything but the parts of the key.
"""

from __future__ import annotations

from argosy.kube.resource_key import ResourceKey


class KeyProperties:
    """Base of dataclasses with a field `key`."""

    __slots__ = ()
    key: ResourceKey

    @property
    def group(self) -> str:
        return self.key.group

    @property
    def kind(self) -> str:
        return self.key.kind

    @property
    def namespace(self) -> str:
        return self.key.namespace

    @property
    def name(self) -> str:
        return self.key.name
