"""Kind names of the command line. In: a word such as `isvc`. Out: one kind. Never: guesses between two kinds."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

from argosy.errors import UserError
from argosy.gitops.health import builtin
from argosy.gitops.health.bundled_rules import list_profiles, load_bundled_rules, load_profile_rules
from argosy.gitops.health.setting_kind_names import has_wildcard
from argosy.gitops.health.settings import Customizations
from argosy.kube.resource_key import GroupKind
from argosy.kube.schema.builtin_kinds import BUILTIN_RESOURCES

# Short names of custom resources, needed because these commands run without a server.
SHORT_KIND_NAMES: Final[Mapping[str, str]] = {
    "isvc": "InferenceService.serving.kserve.io",
    "llmisvc": "LLMInferenceService.serving.kserve.io",
    "tm": "TrainedModel.serving.kserve.io",
    "ig": "InferenceGraph.serving.kserve.io",
    "nvj": "NotebookValidationJob.mlops.mlops.dev",
    "es": "ExternalSecret.external-secrets.io",
    "cert": "Certificate.cert-manager.io",
    "ksvc": "Service.serving.knative.dev",
    "vcjob": "Job.batch.volcano.sh",
    "lws": "LeaderWorkerSet.leaderworkerset.x-k8s.io",
    "wl": "Workload.kueue.x-k8s.io",
    "cq": "ClusterQueue.kueue.x-k8s.io",
    "wf": "Workflow.argoproj.io",
    "ro": "Rollout.argoproj.io",
    "app": "Application.argoproj.io",
    "dsc": "DataScienceCluster.datasciencecluster.opendatahub.io",
    "csv": "ClusterServiceVersion.operators.coreos.com",
    "pr": "PipelineRun.tekton.dev",
    "tr": "TaskRun.tekton.dev",
}


def list_known_kinds(customizations: Customizations) -> list[GroupKind]:
    """List every kind with a health rule, sorted by group and kind."""
    kinds = {*load_bundled_rules(), *(GroupKind(*key) for key in builtin.BUILTIN_CHECKS)}
    kinds |= {group_kind for profile in list_profiles() for group_kind in load_profile_rules(profile)}
    kinds |= {parse_kind_pattern(check.pattern) for check in customizations.checks if not has_wildcard(check.pattern)}
    return sorted(kinds)


def parse_kind_pattern(pattern: str) -> GroupKind:
    group, _, kind = pattern.rpartition("/")
    return GroupKind(group, kind)


def find_kind(kind_name: str, kinds: Iterable[GroupKind]) -> GroupKind:
    """Find the kind for `InferenceService`, `inferenceservices` or `isvc`, optionally with `.group`."""
    names = list(kinds)
    lower_name = SHORT_KIND_NAMES.get(kind_name.lower(), kind_name).lower()
    matches = [
        group_kind
        for group_kind in names
        if lower_name in _list_spellings(group_kind) or group_kind == _builtin_short_names().get(lower_name)
    ]
    if len(matches) == 1:
        return matches[0]
    if matches:
        choices = " or ".join(
            str(group_kind) if group_kind.group else f"core/{group_kind.kind}" for group_kind in matches
        )
        raise UserError(f"{kind_name!r} is the name of {len(matches)} kinds; write {choices}")
    by_name = {str(group_kind).lower(): str(group_kind) for group_kind in names} | {
        group_kind.kind.lower(): str(group_kind) for group_kind in names
    }
    similar_names = difflib.get_close_matches(kind_name.lower(), by_name, n=3, cutoff=0.6)
    suggestion = (
        f"did you mean {', '.join(dict.fromkeys(by_name[name] for name in similar_names))}? " if similar_names else ""
    )
    raise UserError(f"no health rule for kind {kind_name!r}; {suggestion}argosy health list shows all")


def _list_spellings(group_kind: GroupKind) -> set[str]:
    kind = group_kind.kind.lower()
    plural = kind[:-1] + "ies" if kind.endswith("y") else kind + ("es" if kind.endswith("s") else "s")
    full = {f"{name}.{group_kind.group}" for name in (kind, plural)} if group_kind.group else set()
    return {kind, plural, f"{group_kind.group or 'core'}/{kind}", f"{group_kind.group}_{kind}", *full}


@cache
def _builtin_short_names() -> dict[str, GroupKind]:
    return {short: resource.group_kind for resource in reversed(BUILTIN_RESOURCES) for short in resource.short_names}
