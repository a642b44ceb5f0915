"""The AddOn type: an optional set of controllers with their CRDs.

In: a name and an optional variant. Out: an AddOn. Never: knows who loads it. Built-in and third-party add-ons are both
found by the entry point `argosy.addons`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from argosy.kube.client import AdmissionHandler, PodLogReader, SubresourceExtension
from argosy.kube.controller.controller_protocol import Controller
from argosy.kube.objects import Manifest


@dataclass(frozen=True)
class AddOn:
    """The controllers of an add-on, and the objects that must exist before they start."""

    name: str
    description: str = ""  # one sentence for users: what it simulates, and that it is a simulation
    controllers: Sequence[Controller] = ()
    definitions: Sequence[Manifest] = ()  # CRDs, updated at every start
    initial_manifests: Sequence[Manifest] = ()  # created at the start if missing, in this order
    pod_log_reader: PodLogReader | None = None  # reads Pod logs for the embedded cluster
    admission_handlers: Sequence[
        AdmissionHandler
    ] = ()  # run in the embedded cluster before a manifest of their kind is stored
    subresource_extensions: Sequence[SubresourceExtension] = ()  # handle subresources of their kinds
    embedded_only: bool = False
    metrics: Callable[[], str] | None = None  # returns its metrics in the Prometheus text format
    # Runs from before the start of the controllers until after their end; its argument is the folder of the cluster
    background: Callable[[Path], AbstractAsyncContextManager[None]] | None = None


AddOnFactory = Callable[[str], AddOn]  # takes the variant, "" for the default; raises UserError for an unknown variant
