"""The controller runtime: informers fill a cache, work queues trigger reconcilers.

In: controllers, a cluster. Out: calls of `reconcile(key)`. Never: knows a kind by name, except Lease.
"""

from argosy.kube.controller.addon import AddOn, Maker
from argosy.kube.controller.cache import Cache
from argosy.kube.controller.clock import SYSTEM_CLOCK, Backoff, Clock
from argosy.kube.controller.controller import Context, Controller, Requeue, Watch, itself, owner
from argosy.kube.controller.informer import Informer
from argosy.kube.controller.informer_set import Everything
from argosy.kube.controller.leader_election import Terms, lead
from argosy.kube.controller.work_queue import WorkQueue
from argosy.kube.controller.workers import attend, run

__all__ = [
    "SYSTEM_CLOCK",
    "AddOn",
    "Backoff",
    "Cache",
    "Clock",
    "Context",
    "Controller",
    "Everything",
    "Informer",
    "Maker",
    "Requeue",
    "Terms",
    "Watch",
    "WorkQueue",
    "attend",
    "itself",
    "lead",
    "owner",
    "run",
]
