"""What has a key, in the words of a template: those read attributes, and a key is a tuple.

In: –. Out: Keyed. Never: anything but names.
"""

from __future__ import annotations

from argosy.kube.names import ResourceKey


class Keyed:
    """For dataclasses with a field `key`."""

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
