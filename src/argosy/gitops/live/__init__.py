"""Live objects of a cluster: tracking, ownership, resource trees and orphans.

In: a cache of live manifests, desired manifests, settings. Out: the objects of an Application, its resource tree, its
orphans. Never: sends a request to a cluster; changes a manifest.
"""

from argosy.gitops.live.app_resources import (
    AffectedApplication,
    find_affected_applications,
    find_managed_resources,
    find_version_mismatches,
)
from argosy.gitops.live.cache_indexes import BY_NAMESPACE, BY_OWNER, BY_PARENT, CacheReader, build_indexes
from argosy.gitops.live.cached_field_selection import ApplicationCachePolicy, is_trimmed
from argosy.gitops.live.exclusions import Exclusions, read_exclusions
from argosy.gitops.live.orphans import find_orphans
from argosy.gitops.live.orphans import orphan_warning as orphan_warning
from argosy.gitops.live.parent_references import ParentRef
from argosy.gitops.live.pod_status import list_images
from argosy.gitops.live.resource_tree import ResourceNode, build_tree, walk_tree
from argosy.gitops.live.tracking import (
    TrackingId,
    TrackingSettings,
    add_tracking,
    build_instance_name,
    is_self_referenced,
    normalize_tracking,
    parse_tracking_id,
    read_instance_name,
    read_tracking,
    read_tracking_id,
)

__all__ = [
    "BY_NAMESPACE",
    "BY_OWNER",
    "BY_PARENT",
    "AffectedApplication",
    "ApplicationCachePolicy",
    "CacheReader",
    "Exclusions",
    "ParentRef",
    "ResourceNode",
    "TrackingId",
    "TrackingSettings",
    "add_tracking",
    "build_indexes",
    "build_instance_name",
    "build_tree",
    "find_affected_applications",
    "find_managed_resources",
    "find_orphans",
    "find_version_mismatches",
    "is_self_referenced",
    "is_trimmed",
    "list_images",
    "normalize_tracking",
    "orphan_warning",
    "parse_tracking_id",
    "read_exclusions",
    "read_instance_name",
    "read_tracking",
    "read_tracking_id",
    "walk_tree",
]
