"""The small machine that all controllers run on: informers fill a cache, queues wake reconcilers.

In: controllers, a cluster. Out: `reconcile(key)`. Never: knows any kind by name, but for Leases.
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
