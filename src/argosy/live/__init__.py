"""What lives in a cluster, and whose it is.

In: a cache of live manifests, desired manifests, settings. Out: what belongs to an application, its tree, its orphans.
Never: asks a cluster; changes a manifest.
"""

from argosy.live.exclusions import Exclusions, read_exclusions
from argosy.live.keeping import Keeping, is_slim
from argosy.live.orphans import orphans
from argosy.live.orphans import warning as orphan_warning
from argosy.live.pods import images_of
from argosy.live.reader import BY_NAMESPACE, BY_OWNER, BY_PARENT, CacheReader, indexes
from argosy.live.relations import Parent
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
from argosy.live.tree import Node, tree, walk
from argosy.live.view import Concern, concerned, in_other_versions, managed

__all__ = [
    "BY_NAMESPACE",
    "BY_OWNER",
    "BY_PARENT",
    "CacheReader",
    "Concern",
    "Exclusions",
    "Keeping",
    "Node",
    "Parent",
    "Tracking",
    "TrackingId",
    "concerned",
    "images_of",
    "in_other_versions",
    "indexes",
    "instance_name",
    "is_self_referenced",
    "is_slim",
    "managed",
    "orphan_warning",
    "orphans",
    "owner",
    "read_exclusions",
    "read_id",
    "read_tracking",
    "settle",
    "track",
    "tracking_id",
    "tree",
    "walk",
]
