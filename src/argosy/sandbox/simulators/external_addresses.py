"""Assigns external addresses to Services and Ingresses, as a cloud provider would.

In: a Service or an Ingress. Out: its address and the delay until it has one. Never: an address that anyone owns.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Final

from argosy.errors import UserError
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps_and_delays import remaining_delay
from argosy.sandbox.simulators.simulation_annotations import (
    InjectedFault,
    read_simulation_annotations,
    read_simulation_settings,
)
from argosy.sandbox.simulators.timestamps_and_durations import parse_timestamp

SIMULATED_HOSTNAME: Final = "simulated.sandbox.argosy.dev"


def build_external_ip(manifest: Manifest) -> str:
    """Return a stable address per uid from 203.0.113.0/24 (RFC 5737: for documentation, so nothing answers there)."""
    digest = hashlib.sha256(str(manifest["metadata"]["uid"]).encode()).digest()
    return f"203.0.113.{1 + digest[0] % 254}"


def compute_provisioning_delay(manifest: Manifest, now: datetime) -> float | None:
    """Return the seconds until the object is provisioned, or None if an injected fault prevents it."""
    try:
        settings = read_simulation_settings([read_simulation_annotations(manifest)])
    except UserError:
        return None
    if settings.fault is not None and settings.fault is not InjectedFault.SLOW:
        return None
    return remaining_delay(parse_timestamp(manifest["metadata"]["creationTimestamp"]), settings.ready_after, now)
