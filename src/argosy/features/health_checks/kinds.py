"""Kind names of the command line. In: a word such as `isvc`. Out: one kind. Never: guesses between two kinds."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

from argosy.errors import UserError
from argosy.gitops.health import builtin
from argosy.gitops.health.bundled import bundled_rules, profile_rules, profiles
from argosy.gitops.health.kind_keys import is_wild
from argosy.gitops.health.settings import Customizations
from argosy.kube.names import GroupKind
from argosy.kube.schema.builtin_kinds import BUILT_IN

# Short names of custom resources, needed because these commands run without a server.
SHORT: Final[Mapping[str, str]] = {
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


def known_kinds(customizations: Customizations) -> list[GroupKind]:
    """List every kind with a health rule, sorted by group and kind."""
    found = {*bundled_rules(), *(GroupKind(*key) for key in builtin.CHECKS)}
    found |= {of for profile in profiles() for of in profile_rules(profile)}
    found |= {kind_of(check.pattern) for check in customizations.checks if not is_wild(check.pattern)}
    return sorted(found)


def kind_of(pattern: str) -> GroupKind:
    group, _, kind = pattern.rpartition("/")
    return GroupKind(group, kind)


def find_kind(word: str, known: Iterable[GroupKind]) -> GroupKind:
    """Find the kind for `InferenceService`, `inferenceservices` or `isvc`, optionally with `.group`."""
    names = list(known)
    asked = SHORT.get(word.lower(), word).lower()
    found = [of for of in names if asked in _spellings(of) or of == _short_names().get(asked)]
    if len(found) == 1:
        return found[0]
    if found:
        choices = " or ".join(str(of) if of.group else f"core/{of.kind}" for of in found)
        raise UserError(f"{word!r} is the name of {len(found)} kinds; write {choices}")
    by_name = {str(of).lower(): str(of) for of in names} | {of.kind.lower(): str(of) for of in names}
    near = difflib.get_close_matches(word.lower(), by_name, n=3, cutoff=0.6)
    meant = f"did you mean {', '.join(dict.fromkeys(by_name[name] for name in near))}? " if near else ""
    raise UserError(f"no health rule for kind {word!r}; {meant}argosy health list shows all")


def _spellings(of: GroupKind) -> set[str]:
    kind = of.kind.lower()
    plural = kind[:-1] + "ies" if kind.endswith("y") else kind + ("es" if kind.endswith("s") else "s")
    full = {f"{name}.{of.group}" for name in (kind, plural)} if of.group else set()
    return {kind, plural, f"{of.group or 'core'}/{kind}", f"{of.group}_{kind}", *full}


@cache
def _short_names() -> dict[str, GroupKind]:
    return {short: each.group_kind for each in reversed(BUILT_IN) for short in each.short_names}
