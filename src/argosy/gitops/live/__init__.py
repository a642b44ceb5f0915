"""Live objects of a cluster: tracking, ownership, resource trees and orphans.

In: a cache of live manifests, desired manifests, settings. Out: the objects of an Application, its resource tree, its
orphans. Never: sends a request to a cluster; changes a manifest.
"""

from argosy.gitops.live.app_resources import Concern, concerned, in_other_versions, managed
from argosy.gitops.live.cache_policy import Keeping, is_slim
from argosy.gitops.live.cache_reader import BY_NAMESPACE, BY_OWNER, BY_PARENT, CacheReader, indexes
from argosy.gitops.live.exclusions import Exclusions, read_exclusions
from argosy.gitops.live.orphans import orphans
from argosy.gitops.live.orphans import warning as orphan_warning
from argosy.gitops.live.ownership import Parent
from argosy.gitops.live.pod_status import images_of
from argosy.gitops.live.resource_tree import Node, tree, walk
from argosy.gitops.live.tracking import (
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
