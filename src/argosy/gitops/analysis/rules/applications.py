"""Rules about Applications: source, destination, and shared objects.

In: a repository. Out: violations. Never: reports a branch or namespace unless argosy.yaml or the name contradicts it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from argosy.gitops.analysis.fix_edit_builders import add_sync_option, replace_value
from argosy.gitops.analysis.repository_view import (
    ApplicationDeclaration,
    DeclaredEnvironment,
    ManifestWithLocations,
    RenderedSource,
    RenderFailure,
    RenderFailureKind,
    RepositoryView,
)
from argosy.gitops.analysis.rule import AnalysisRule
from argosy.gitops.analysis.rule_violation import FileLocation, Severity, Violation
from argosy.gitops.analysis.schema_validation import SchemaValidator
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema.name_label_address_syntax import check_dns_label
from argosy.kube.well_known_kinds import ARGOCD

_WORK_BRANCH_PREFIXES: Final = ("feature/", "feat/", "bugfix/", "fix/", "wip/", "dev/")
_PRODUCTION_WORDS: Final = frozenset({"prod", "production", "prd", "live"})


def _list_failures(repository: RepositoryView, kind: str) -> Iterator[tuple[RenderedSource, RenderFailure]]:
    return (
        (rendering, rendering.failure)
        for rendering in repository.renderings
        if rendering.failure and rendering.failure.kind == kind
    )


def _find_missing_paths(repository: RepositoryView) -> Iterator[Violation]:
    for rendering, failure in _list_failures(repository, RenderFailureKind.PATH):
        yield Violation(failure.location, failure.message, failure.fix, _get_subject(rendering), "spec.source.path")


def _find_failed_renders(repository: RepositoryView) -> Iterator[Violation]:
    """Report a broken file once, with all Applications that are built from it."""
    failures_by_location: dict[tuple[FileLocation, str], list[tuple[RenderedSource, RenderFailure]]] = defaultdict(list)
    for rendering, failure in _list_failures(repository, RenderFailureKind.RENDER):
        failures_by_location[failure.location, failure.message].append((rendering, failure))
    for (location, message), failures in failures_by_location.items():
        rendering, failure = failures[0]
        names = [source.declaration.name for source, _ in failures if source.declaration]
        prefix = f"{', '.join(names)}: " if names else ""
        yield Violation(location, f"{prefix}{message}", failure.fix, _get_subject(rendering) or rendering.folder)


def _get_subject(rendering: RenderedSource) -> str:
    return rendering.declaration.item.name if rendering.declaration else ""


def _find_shared_objects(repository: RepositoryView) -> Iterator[Violation]:
    schemas = SchemaValidator(repository.definitions)
    owners: dict[tuple[str, ResourceKey], dict[str, tuple[ApplicationDeclaration, ManifestWithLocations]]] = (
        defaultdict(dict)
    )
    for rendering, item in repository.list_objects():
        declaration = rendering.declaration
        if declaration is None or not (declaration.app.destination.server or declaration.app.destination.name):
            continue
        destination = declaration.app.destination.with_in_cluster_alias
        namespace = "" if schemas.is_cluster_scoped(item.manifest) else rendering.resolve_namespace(item)
        key = item.key._replace(namespace=namespace)
        owners[destination.server or destination.name, key].setdefault(declaration.name, (declaration, item))
    for (_, key), owners_by_name in owners.items():
        if len(owners_by_name) > 1:
            names = sorted(owners_by_name)
            declaration, item = owners_by_name[names[1]]
            other_names = [name for name in names if name != declaration.name]
            others = ", ".join(other_names[:3]) + (f" and {len(other_names) - 3} more" if len(other_names) > 3 else "")
            namespace_text = f" in {key.namespace}" if key.namespace else ""
            message = f"{key.kind}/{key.name}{namespace_text} belongs to {declaration.name} and to {others}"
            fix = "declare it in one of them only, or use another name or namespace in the other"
            yield Violation(item.find_location("metadata", "name"), message, fix, item.name)


def _list_declared_environments(
    repository: RepositoryView,
) -> Iterator[tuple[ApplicationDeclaration, DeclaredEnvironment]]:
    plans = {plan.application: plan for plan in repository.environments}
    for declaration in repository.applications:
        if plan := plans.get(declaration.name):
            yield declaration, plan


def _find_namespace_mismatches(repository: RepositoryView) -> Iterator[Violation]:
    for declaration, plan in _list_declared_environments(repository):
        namespace = declaration.app.destination.namespace
        if namespace and plan.namespace and namespace != plan.namespace:
            message = f"{declaration.name} deploys to {namespace}, but argosy.yaml has {plan.namespace} for {plan.name}"
            location = declaration.find_location("spec", "destination", "namespace")
            yield Violation(
                location, message, f"set {plan.namespace} here, or correct argosy.yaml", declaration.item.name
            )


def _find_wrong_branches(repository: RepositoryView) -> Iterator[Violation]:
    plans = {declaration.name: plan for declaration, plan in _list_declared_environments(repository)}
    for declaration in repository.applications:
        plan = plans.get(declaration.name)
        for index, source in enumerate(declaration.app.sources):
            if source.chart:
                continue
            path = ("spec", "sources", index) if declaration.app.has_many_sources else ("spec", "source")
            location = declaration.find_location(*path, "targetRevision")
            if plan and plan.ref and source.ref not in (plan.ref, "", "HEAD") and len(declaration.app.sources) == 1:
                message = f"{declaration.name} follows {source.ref}, but argosy.yaml delivers {plan.ref}"
                file_fix = declaration.item.build_fix(
                    replace_value((*path, "targetRevision"), source.ref, plan.ref), *path
                )
                yield Violation(
                    location, message, f"set targetRevision: {plan.ref}", declaration.item.name, file_fix=file_fix
                )
            elif source.ref.startswith(_WORK_BRANCH_PREFIXES) and _is_production(declaration):
                message = f"{declaration.name} is a production Application, but follows branch {source.ref}"
                fix = "follow the release branch or a tag"
                field = ".".join(str(step) for step in (*path, "targetRevision"))
                yield Violation(location, message, fix, declaration.item.name, field, Severity.ERROR)


def _find_missing_refs(repository: RepositoryView) -> Iterator[Violation]:
    for declaration in repository.applications:
        for index, source in enumerate(declaration.app.sources):
            reason = "" if source.chart else repository.find_missing_ref_reason(source.repo_url, source.ref)
            if reason:
                path = ("spec", "sources", index) if declaration.app.has_many_sources else ("spec", "source")
                message, _, fix = reason.partition("; ")
                location = declaration.find_location(*path, "targetRevision")
                fix = fix or "use an existing one"
                yield Violation(
                    location, f"{declaration.name}: {message}", fix, declaration.item.name, "targetRevision"
                )


def _is_production(declaration: ApplicationDeclaration) -> bool:
    words = {*declaration.name.split("-"), *declaration.app.destination.namespace.split("-")}
    labels = declaration.item.get_map("metadata", "labels")
    return bool(_PRODUCTION_WORDS & {*words, str(labels.get("environment", "")), str(labels.get("env", ""))})


def _find_unexpected_automation(repository: RepositoryView) -> Iterator[Violation]:
    for declaration, plan in _list_declared_environments(repository):
        automated = declaration.app.policy.automated
        if automated and automated.is_on and not plan.is_automated:
            prune_text = ", and prunes" if automated.prune else ""
            message = (
                f"{declaration.name} syncs automatically{prune_text}, but argosy.yaml has sync: manual for {plan.name}"
            )
            fix = "remove spec.syncPolicy.automated, or set sync: auto in argosy.yaml"
            yield Violation(
                declaration.find_location("spec", "syncPolicy", "automated"), message, fix, declaration.item.name
            )


def _find_missing_namespaces(repository: RepositoryView) -> Iterator[Violation]:
    for declaration in (rendering.declaration for rendering in repository.renderings):
        namespace = declaration.app.destination.namespace if declaration else ""
        if declaration is not None and namespace and (errors := check_dns_label(namespace)):
            reason = errors[0].partition(" (e.g.")[0]
            message = f"{declaration.name} deploys to namespace {namespace!r}, which is not a valid name: {reason}"
            location = declaration.find_location("spec", "destination", "namespace")
            yield Violation(location, message, "correct the name", declaration.item.name, severity=Severity.ERROR)
    created_namespaces = {
        item.key.name for _, item in repository.list_objects() if item.group_kind == ("", "Namespace")
    }
    created_namespaces |= {
        item.key.name for item in repository.unrendered_manifests if item.group_kind == ("", "Namespace")
    }
    created_namespaces |= {plan.namespace for plan in repository.environments} | {"default"}
    for rendering in repository.renderings:
        declaration = rendering.declaration
        if declaration is None or "CreateNamespace=true" in declaration.app.policy.options or rendering.failure:
            continue
        namespace = declaration.app.destination.namespace
        if (
            not namespace
            or check_dns_label(namespace)
            or namespace in created_namespaces
            or namespace.startswith(("kube-", "openshift"))
        ):
            continue
        if namespace == declaration.app.namespace or not rendering.items:
            continue
        message = (
            f"nothing here creates namespace {namespace}, and {declaration.name} does not have CreateNamespace=true"
        )
        fix = "add CreateNamespace=true to spec.syncPolicy.syncOptions, unless the namespace is created elsewhere"
        file_fix = declaration.item.build_fix(add_sync_option("CreateNamespace=true"), "spec")
        yield Violation(
            declaration.find_location("spec", "destination", "namespace"),
            message,
            fix,
            declaration.item.name,
            file_fix=file_fix,
        )


def _find_misplaced_ignore_rules(repository: RepositoryView) -> Iterator[Violation]:
    for item in (*repository.unrendered_manifests, *(item for _, item in repository.list_objects())):
        if item.group_kind == ARGOCD and "ignoreDifferences" in item.get_map("spec"):
            message = f"{item.name} has spec.ignoreDifferences, a field of Applications that the operator drops"
            fix = "move it to spec.resourceIgnoreDifferences here, or to spec.ignoreDifferences of the Application"
            yield Violation(
                item.find_location("spec", "ignoreDifferences"), message, fix, item.name, "spec.ignoreDifferences"
            )


RULES: Final = (
    AnalysisRule(
        "AGY101",
        Severity.ERROR,
        "The folder of a source does not exist",
        "Argo CD shows a ComparisonError, and the Application is neither compared nor synced.",
        "The repository is this one: a remote of this clone has its URL, or another Application with the same URL has"
        " its folder here and no remote has another name. The path exists neither in a folder above the Application nor"
        " on the branch that it names; or a source that renders here does not render at the branch that it follows, as"
        " last fetched. The branch that changes are merged into is excluded: new files here are not there yet.",
        "Correct spec.source.path, or commit the folder to the branch that the Application follows.",
        _find_missing_paths,
    ),
    AnalysisRule(
        "AGY102",
        Severity.ERROR,
        "A source does not render",
        "Argo CD shows a ComparisonError with the tool's error; the cluster keeps its objects.",
        "It was rendered here with the same rules, from the files in the repository.",
        "Correct the reported file; `argosy render PATH` shows the same error until it renders.",
        _find_failed_renders,
    ),
    AnalysisRule(
        "AGY103",
        Severity.WARNING,
        "Two Applications own one object",
        "Each sync takes over the object from the other Application: both show SharedResourceWarning, and one stays"
        " OutOfSync.",
        "Both were rendered for the same cluster, and the object has the same group, kind, namespace and name in both.",
        "Declare it in one Application only, or rename it in one of them.",
        _find_shared_objects,
    ),
    AnalysisRule(
        "AGY104",
        Severity.WARNING,
        "An Application deploys to another namespace than its environment",
        "Secrets, quotas and permissions are set up in one namespace, and the model is deployed to another.",
        "argosy.yaml names the Application and its namespace; both are compared literally.",
        "Use the same name in both places.",
        _find_namespace_mismatches,
    ),
    AnalysisRule(
        "AGY105",
        Severity.WARNING,
        "An environment follows the wrong branch",
        "Unreviewed changes are deployed; if the branch is deleted after its merge, all syncs stop.",
        "argosy.yaml names the ref to deliver, or the Application's name says production and its branch name says"
        " unfinished work.",
        "Set targetRevision to the release branch or a tag.",
        _find_wrong_branches,
        "if argosy.yaml names the ref to deliver",
    ),
    AnalysisRule(
        "AGY106",
        Severity.WARNING,
        "An environment syncs automatically although argosy.yaml says manual",
        "Every merge reaches the environment at once, and prune deletes the objects that the merge removed.",
        "argosy.yaml has sync: manual for the environment, and the Application has syncPolicy.automated.",
        "Remove syncPolicy.automated from the Application, or set sync: auto.",
        _find_unexpected_automation,
    ),
    AnalysisRule(
        "AGY107",
        Severity.INFO,
        "Nothing creates the namespace",
        'The first sync fails: namespaces "…" not found.',
        "No manifest, no environment of argosy.yaml and no sync option of the Application creates it. A namespace that"
        " is created outside of this repository is not visible here, so this is only information.",
        "Add CreateNamespace=true to the sync options, or keep the Namespace in Git. An invalid namespace name is an"
        " error: correct it.",
        _find_missing_namespaces,
        "by adding the sync option",
    ),
    AnalysisRule(
        "AGY112",
        Severity.ERROR,
        "A branch or tag does not exist",
        "Argo CD shows a ComparisonError, and the Application is neither compared nor synced.",
        "With --online the Git server was just asked for its branches and tags, and answered. A clone alone is not"
        " enough, so without --online this is not checked; nor are commits, which a Git server does not list.",
        "Correct targetRevision, or push the branch or tag.",
        _find_missing_refs,
    ),
    AnalysisRule(
        "AGY115",
        Severity.ERROR,
        "ignoreDifferences is in an ArgoCD resource",
        "The operator's CRD has no such field: it is dropped, and the differences are still shown.",
        "ArgoCD resources have the field resourceIgnoreDifferences; ignoreDifferences is a field of Applications.",
        "Move the rules to spec.resourceIgnoreDifferences, or into the Application.",
        _find_misplaced_ignore_rules,
    ),
)
