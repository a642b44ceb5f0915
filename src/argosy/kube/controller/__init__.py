"""The controller runtime: informers fill a cache, work queues trigger reconcilers.

In: controllers, a cluster. Out: calls of `reconcile(key)`. Never: knows a kind by name, except Lease.
"""

from argosy.kube.controller.addon import AddOn, AddOnFactory
from argosy.kube.controller.cache import InformerCache
from argosy.kube.controller.clock import SYSTEM_CLOCK, Backoff, Clock
from argosy.kube.controller.controller_informers_and_workers import run, run_workers
from argosy.kube.controller.controller_protocol import (
    EVERY_KIND,
    ChangeWatch,
    Controller,
    ControllerContext,
    Requeue,
    Watch,
    itself,
    map_to_owner,
)
from argosy.kube.controller.informer import Informer
from argosy.kube.controller.informer_set import InformerSet
from argosy.kube.controller.leader_election import LeaderElectionConfig, run_as_leader
from argosy.kube.controller.work_queue import WorkQueue

__all__ = [
    "EVERY_KIND",
    "SYSTEM_CLOCK",
    "AddOn",
    "AddOnFactory",
    "Backoff",
    "ChangeWatch",
    "Clock",
    "Controller",
    "ControllerContext",
    "Informer",
    "InformerCache",
    "InformerSet",
    "LeaderElectionConfig",
    "Requeue",
    "Watch",
    "WorkQueue",
    "itself",
    "map_to_owner",
    "run",
    "run_as_leader",
    "run_workers",
]
