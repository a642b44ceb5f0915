"""What lives in a cluster, and whose it is.

In: a cache of live manifests, desired manifests, settings. Out: what belongs to an application, its tree, its orphans.
Never: asks a cluster; changes a manifest.
"""

from argosy.live.tracking import (
    Tracking,
    TrackingId,
    instance_name,
    is_self_referenced,
    owner,
    read_id,
    read_tracking,
    settle,
    track,
    tracking_id,
)

__all__ = [
    "Tracking",
    "TrackingId",
    "instance_name",
    "is_self_referenced",
    "owner",
    "read_id",
    "read_tracking",
    "settle",
    "track",
    "tracking_id",
]
