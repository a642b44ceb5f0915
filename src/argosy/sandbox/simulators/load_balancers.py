"""Assigns external addresses to Services and Ingresses, as a cloud provider would.

In: a Service or an Ingress. Out: its address and the delay until it has one. Never: an address that anyone owns.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Final

from argosy.errors import UserError
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps import remaining_delay
from argosy.sandbox.simulators.fault_injection import Fault, asked, read_wishes
from argosy.sandbox.simulators.timestamps import moment_of

HOSTNAME: Final = "simulated.sandbox.argosy.dev"


def address_of(manifest: Manifest) -> str:
    """Return a stable address per uid from 203.0.113.0/24 (RFC 5737: for documentation, so nothing answers there)."""
    digest = hashlib.sha256(str(manifest["metadata"]["uid"]).encode()).digest()
    return f"203.0.113.{1 + digest[0] % 254}"


def when_given(manifest: Manifest, now: datetime) -> float | None:
    """Return the seconds until the object is provisioned, or None if an injected fault prevents it."""
    try:
        wishes = read_wishes([asked(manifest)])
    except UserError:
        return None
    if wishes.fail is not None and wishes.fail is not Fault.SLOW:
        return None
    return remaining_delay(moment_of(manifest["metadata"]["creationTimestamp"]), wishes.ready_after, now)
