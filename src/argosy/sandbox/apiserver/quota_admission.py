"""Quota admission: refuses an object that would exceed a ResourceQuota.

In: an object before it is stored, and every staged write. Out: Forbidden, or nothing. Never: writes; a simulated
controller keeps the status of quotas.
"""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from argosy.kube.objects import Manifest
from argosy.kube.schema.pod_resources import ZERO_AMOUNT, Amounts
from argosy.kube.schema.resource_quota import count_usage, find_refusal, quota_matches
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.kind_codec_and_validation import ApiKind
from argosy.sandbox.store import Store

BucketAndNamespace = tuple[str, str]  # a bucket and a namespace
QUOTA_BUCKET = "resourcequotas"


class QuotaChecker:
    def __init__(self, store: Store) -> None:
        self._store = store
        # only for namespaces with a quota; loaded on first use
        self._usage_by_bucket: dict[BucketAndNamespace, dict[str, tuple[Manifest, Amounts]]] = {}
        store.add_refusal_callback(self._usage_by_bucket.clear)

    def check(self, served: ApiKind, manifest: Manifest) -> None:
        resource, metadata = served.resource, manifest["metadata"]
        if not resource.namespaced:
            return
        bucket_and_namespace = (served.bucket, metadata["namespace"])
        entries = list(self._store.list(QUOTA_BUCKET, metadata["namespace"]))
        if not entries:
            self._usage_by_bucket.pop(bucket_and_namespace, None)
            return
        requested = count_usage(resource.group, resource.plural, manifest)
        for quota in (orjson.loads(entry.body) for entry in entries):
            # k8s: only limits that the quota controller has copied into the status count
            hard_limits = (quota.get("status") or {}).get("hard") or {}
            quota = {**quota, "spec": {**(quota.get("spec") or {}), "hard": hard_limits}}
            names = requested.keys() & hard_limits.keys()
            if names and quota_matches(quota, resource.plural, manifest):
                used = self._sum_usage(served, bucket_and_namespace, quota, names)
                if reason := find_refusal(quota, manifest, requested, used):
                    raise status_errors.forbidden(resource, metadata["name"], reason)

    def on_staged(self, served: ApiKind, manifest: Manifest, *, is_deleted: bool) -> None:
        """Must be called for every write when it is staged."""
        usage_by_name = self._usage_by_bucket.get((served.bucket, manifest["metadata"].get("namespace", "")))
        if usage_by_name is not None:
            usage_by_name.pop(manifest["metadata"]["name"], None)
            if not is_deleted:
                usage_by_name[manifest["metadata"]["name"]] = _with_usage(served, manifest)

    def _sum_usage(
        self, served: ApiKind, bucket_and_namespace: BucketAndNamespace, quota: Manifest, names: Iterable[str]
    ) -> Amounts:
        if bucket_and_namespace not in self._usage_by_bucket:
            manifests = (orjson.loads(entry.body) for entry in self._store.list(*bucket_and_namespace))
            self._usage_by_bucket[bucket_and_namespace] = {
                stored_manifest["metadata"]["name"]: _with_usage(served, stored_manifest)
                for stored_manifest in manifests
            }
        total: Amounts = dict.fromkeys(names, ZERO_AMOUNT)
        for manifest, usage in self._usage_by_bucket[bucket_and_namespace].values():
            if quota_matches(quota, served.resource.plural, manifest):
                for name in total:
                    total[name] += usage.get(name, ZERO_AMOUNT)
        return total


def _with_usage(served: ApiKind, manifest: Manifest) -> tuple[Manifest, Amounts]:
    return manifest, count_usage(served.resource.group, served.resource.plural, manifest)
