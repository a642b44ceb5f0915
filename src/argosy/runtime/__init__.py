"""The small machine that all controllers run on: informers fill a cache, queues wake reconcilers.

In: controllers, a cluster. Out: `reconcile(key)`. Never: knows any kind by name, but for Leases.
"""

from argosy.runtime.addon import AddOn, Maker
from argosy.runtime.cache import Cache
from argosy.runtime.clock import SYSTEM_CLOCK, Backoff, Clock
from argosy.runtime.controller import Context, Controller, Requeue, Watch, itself, owner
from argosy.runtime.everything import Everything
from argosy.runtime.informer import Informer
from argosy.runtime.leader import Terms, lead
from argosy.runtime.queue import WorkQueue
from argosy.runtime.workers import attend, run

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
