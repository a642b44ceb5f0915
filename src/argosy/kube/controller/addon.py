"""What an add-on is: an optional set of controllers, with the kinds that they bring.

In: a name and perhaps a variant. Out: an AddOn. Never: knows who loads it. Built-in add-ons enter by the same door as a
stranger's: the entry points `argosy.addons`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from argosy.kube.client import Admitter, Performer, PodLogs
from argosy.kube.controller.controller import Controller
from argosy.kube.objects import Manifest


@dataclass(frozen=True)
class AddOn:
    """A name, the controllers that run, and what must be there before they start."""

    name: str
    about: str = ""  # one sentence for people: what it plays, and that it plays
    controllers: Sequence[Controller] = ()
    definitions: Sequence[Manifest] = ()  # of custom kinds; brought up to date at every start
    first: Sequence[Manifest] = ()  # made where they do not exist yet, in this order
    pod_logs: PodLogs | None = None  # whom the embedded cluster asks for what a Pod printed
    admitters: Sequence[Admitter] = ()  # whom the embedded cluster asks before it stores a manifest of their kinds
    performers: Sequence[Performer] = ()  # who does what objects of their kinds are asked
    embedded_only: bool = False
    metrics: Callable[[], str] | None = None  # what it counts, in Prometheus' text form
    # What runs beside its controllers, from before their start until after their end; given the folder of the cluster
    beside: Callable[[Path], AbstractAsyncContextManager[None]] | None = None


Maker = Callable[[str], AddOn]  # given the variant's name, "" for the usual one; raises UserError for an unknown one
