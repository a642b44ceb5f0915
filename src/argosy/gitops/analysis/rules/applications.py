"""Rules about Applications: source, destination, and shared objects.

In: a repository. Out: violations. Never: reports a branch or namespace unless argosy.yaml or the name contradicts it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from argosy.gitops.analysis.fixes import replaced, with_sync_option
from argosy.gitops.analysis.repository import Fault, Item, Planned, Rendering, Repository, Trouble, Written
from argosy.gitops.analysis.rule import Rule
from argosy.gitops.analysis.schema_validation import Schemas
from argosy.gitops.analysis.violation import Place, Severity, Sight
from argosy.kube.names import ResourceKey
from argosy.kube.schema.name_syntax import dns_label

_ARGOCD: Final = ("argoproj.io", "ArgoCD")
_WORK: Final = ("feature/", "feat/", "bugfix/", "fix/", "wip/", "dev/")
_PRODUCTION: Final = frozenset({"prod", "production", "prd", "live"})


def _faults(repository: Repository, kind: str) -> Iterator[tuple[Rendering, Fault]]:
    return ((each, each.fault) for each in repository.renderings if each.fault and each.fault.kind == kind)


def _missing_path(repository: Repository) -> Iterator[Sight]:
    for rendering, fault in _faults(repository, Trouble.PATH):
        yield Sight(fault.place, fault.message, fault.fix, _subject(rendering), "spec.source.path")


def _failing_render(repository: Repository) -> Iterator[Sight]:
    """Report a broken file once, with all Applications that are built from it."""
    found: dict[tuple[Place, str], list[tuple[Rendering, Fault]]] = defaultdict(list)
    for rendering, fault in _faults(repository, Trouble.RENDER):
        found[fault.place, fault.message].append((rendering, fault))
    for (place, message), broken in found.items():
        rendering, fault = broken[0]
        names = [each.written.name for each, _ in broken if each.written]
        lead = f"{', '.join(names)}: " if names else ""
        yield Sight(place, f"{lead}{message}", fault.fix, _subject(rendering) or rendering.folder)


def _subject(rendering: Rendering) -> str:
    return rendering.written.item.name if rendering.written else ""


def _shared(repository: Repository) -> Iterator[Sight]:
    schemas = Schemas(repository.definitions)
    owners: dict[tuple[str, ResourceKey], dict[str, tuple[Written, Item]]] = defaultdict(dict)
    for rendering, item in repository.objects():
        written = rendering.written
        if written is None or not (written.app.destination.server or written.app.destination.name):
            continue
        destination = written.app.destination.known
        home = "" if schemas.is_cluster_wide(item.manifest) else rendering.place_of(item)
        key = item.key._replace(namespace=home)
        owners[destination.server or destination.name, key].setdefault(written.name, (written, item))
    for (_, key), found in owners.items():
        if len(found) > 1:
            names = sorted(found)
            written, item = found[names[1]]
            rest = [name for name in names if name != written.name]
            others = ", ".join(rest[:3]) + (f" and {len(rest) - 3} more" if len(rest) > 3 else "")
            where = f" in {key.namespace}" if key.namespace else ""
            message = f"{key.kind}/{key.name}{where} belongs to {written.name} and to {others}"
            fix = "declare it in one of them only, or use another name or namespace in the other"
            yield Sight(item.at("metadata", "name"), message, fix, item.name)


def _planned(repository: Repository) -> Iterator[tuple[Written, Planned]]:
    plans = {plan.application: plan for plan in repository.planned}
    for written in repository.applications:
        if plan := plans.get(written.name):
            yield written, plan


def _other_namespace(repository: Repository) -> Iterator[Sight]:
    for written, plan in _planned(repository):
        namespace = written.app.destination.namespace
        if namespace and plan.namespace and namespace != plan.namespace:
            message = f"{written.name} deploys to {namespace}, but argosy.yaml has {plan.namespace} for {plan.name}"
            place = written.at("spec", "destination", "namespace")
            yield Sight(place, message, f"set {plan.namespace} here, or correct argosy.yaml", written.item.name)


def _other_branch(repository: Repository) -> Iterator[Sight]:
    plans = {written.name: plan for written, plan in _planned(repository)}
    for written in repository.applications:
        plan = plans.get(written.name)
        for number, source in enumerate(written.app.sources):
            if source.chart:
                continue
            path = ("spec", "sources", number) if written.app.has_many_sources else ("spec", "source")
            place = written.at(*path, "targetRevision")
            if plan and plan.ref and source.ref not in (plan.ref, "", "HEAD") and len(written.app.sources) == 1:
                message = f"{written.name} follows {source.ref}, but argosy.yaml delivers {plan.ref}"
                mend = written.item.mended(replaced((*path, "targetRevision"), source.ref, plan.ref), *path)
                yield Sight(place, message, f"set targetRevision: {plan.ref}", written.item.name, mend=mend)
            elif source.ref.startswith(_WORK) and _is_production(written):
                message = f"{written.name} is a production Application, but follows branch {source.ref}"
                fix = "follow the release branch or a tag"
                named = ".".join(str(step) for step in (*path, "targetRevision"))
                yield Sight(place, message, fix, written.item.name, named, Severity.ERROR)


def _unknown_ref(repository: Repository) -> Iterator[Sight]:
    for written in repository.applications:
        for number, source in enumerate(written.app.sources):
            why = "" if source.chart else repository.absent(source.repo_url, source.ref)
            if why:
                path = ("spec", "sources", number) if written.app.has_many_sources else ("spec", "source")
                message, _, fix = why.partition("; ")
                place = written.at(*path, "targetRevision")
                fix = fix or "use an existing one"
                yield Sight(place, f"{written.name}: {message}", fix, written.item.name, "targetRevision")


def _is_production(written: Written) -> bool:
    words = {*written.name.split("-"), *written.app.destination.namespace.split("-")}
    labels = written.item.fields("metadata", "labels")
    return bool(_PRODUCTION & {*words, str(labels.get("environment", "")), str(labels.get("env", ""))})


def _automated(repository: Repository) -> Iterator[Sight]:
    for written, plan in _planned(repository):
        automated = written.app.policy.automated
        if automated and automated.is_on and not plan.is_automated:
            more = ", and prunes" if automated.prune else ""
            message = f"{written.name} syncs automatically{more}, but argosy.yaml has sync: manual for {plan.name}"
            fix = "remove spec.syncPolicy.automated, or set sync: auto in argosy.yaml"
            yield Sight(written.at("spec", "syncPolicy", "automated"), message, fix, written.item.name)


def _no_namespace(repository: Repository) -> Iterator[Sight]:
    for written in (rendering.written for rendering in repository.renderings):
        namespace = written.app.destination.namespace if written else ""
        if written is not None and namespace and (wrong := dns_label(namespace)):
            why = wrong[0].partition(" (e.g.")[0]
            message = f"{written.name} deploys to namespace {namespace!r}, which is not a valid name: {why}"
            at = written.at("spec", "destination", "namespace")
            yield Sight(at, message, "correct the name", written.item.name, severity=Severity.ERROR)
    made = {item.key.name for _, item in repository.objects() if item.kind == ("", "Namespace")}
    made |= {item.key.name for item in repository.loose if item.kind == ("", "Namespace")}
    made |= {plan.namespace for plan in repository.planned} | {"default"}
    for rendering in repository.renderings:
        written = rendering.written
        if written is None or "CreateNamespace=true" in written.app.policy.options or rendering.fault:
            continue
        namespace = written.app.destination.namespace
        if not namespace or dns_label(namespace) or namespace in made or namespace.startswith(("kube-", "openshift")):
            continue
        if namespace == written.app.namespace or not rendering.items:
            continue
        message = f"nothing here creates namespace {namespace}, and {written.name} does not have CreateNamespace=true"
        fix = "add CreateNamespace=true to spec.syncPolicy.syncOptions, unless the namespace is created elsewhere"
        mend = written.item.mended(with_sync_option("CreateNamespace=true"), "spec")
        yield Sight(written.at("spec", "destination", "namespace"), message, fix, written.item.name, mend=mend)


def _misplaced_ignoring(repository: Repository) -> Iterator[Sight]:
    for item in (*repository.loose, *(item for _, item in repository.objects())):
        if item.kind == _ARGOCD and "ignoreDifferences" in item.fields("spec"):
            message = f"{item.name} has spec.ignoreDifferences, a field of Applications that the operator drops"
            fix = "move it to spec.resourceIgnoreDifferences here, or to spec.ignoreDifferences of the Application"
            yield Sight(item.at("spec", "ignoreDifferences"), message, fix, item.name, "spec.ignoreDifferences")


RULES: Final = (
    Rule(
        "AGY101",
        Severity.ERROR,
        "The folder of a source does not exist",
        "Argo CD shows a ComparisonError, and the Application is neither compared nor synced.",
        "The repository is this one: a remote of this clone has its URL, or another Application with the same URL has"
        " its folder here and no remote has another name. The path exists neither in a folder above the Application nor"
        " on the branch that it names; or a source that renders here does not render at the branch that it follows, as"
        " last fetched. The branch that changes are merged into is excluded: new files here are not there yet.",
        "Correct spec.source.path, or commit the folder to the branch that the Application follows.",
        _missing_path,
    ),
    Rule(
        "AGY102",
        Severity.ERROR,
        "A source does not render",
        "Argo CD shows a ComparisonError with the tool's error; the cluster keeps its objects.",
        "It was rendered here with the same rules, from the files in the repository.",
        "Correct the reported file; `argosy render PATH` shows the same error until it renders.",
        _failing_render,
    ),
    Rule(
        "AGY103",
        Severity.WARNING,
        "Two Applications own one object",
        "Each sync takes over the object from the other Application: both show SharedResourceWarning, and one stays"
        " OutOfSync.",
        "Both were rendered for the same cluster, and the object has the same group, kind, namespace and name in both.",
        "Declare it in one Application only, or rename it in one of them.",
        _shared,
    ),
    Rule(
        "AGY104",
        Severity.WARNING,
        "An Application deploys to another namespace than its environment",
        "Secrets, quotas and permissions are set up in one namespace, and the model is deployed to another.",
        "argosy.yaml names the Application and its namespace; both are compared literally.",
        "Use the same name in both places.",
        _other_namespace,
    ),
    Rule(
        "AGY105",
        Severity.WARNING,
        "An environment follows the wrong branch",
        "Unreviewed changes are deployed; if the branch is deleted after its merge, all syncs stop.",
        "argosy.yaml names the ref to deliver, or the Application's name says production and its branch name says"
        " unfinished work.",
        "Set targetRevision to the release branch or a tag.",
        _other_branch,
        "if argosy.yaml names the ref to deliver",
    ),
    Rule(
        "AGY106",
        Severity.WARNING,
        "An environment syncs automatically although argosy.yaml says manual",
        "Every merge reaches the environment at once, and prune deletes the objects that the merge removed.",
        "argosy.yaml has sync: manual for the environment, and the Application has syncPolicy.automated.",
        "Remove syncPolicy.automated from the Application, or set sync: auto.",
        _automated,
    ),
    Rule(
        "AGY107",
        Severity.INFO,
        "Nothing creates the namespace",
        'The first sync fails: namespaces "…" not found.',
        "No manifest, no environment of argosy.yaml and no sync option of the Application creates it. A namespace that"
        " is created outside of this repository is not visible here, so this is only information.",
        "Add CreateNamespace=true to the sync options, or keep the Namespace in Git. An invalid namespace name is an"
        " error: correct it.",
        _no_namespace,
        "by adding the sync option",
    ),
    Rule(
        "AGY112",
        Severity.ERROR,
        "A branch or tag does not exist",
        "Argo CD shows a ComparisonError, and the Application is neither compared nor synced.",
        "With --online the Git server was just asked for its branches and tags, and answered. A clone alone is not"
        " enough, so without --online this is not checked; nor are commits, which a Git server does not list.",
        "Correct targetRevision, or push the branch or tag.",
        _unknown_ref,
    ),
    Rule(
        "AGY115",
        Severity.ERROR,
        "ignoreDifferences is in an ArgoCD resource",
        "The operator's CRD has no such field: it is dropped, and the differences are still shown.",
        "ArgoCD resources have the field resourceIgnoreDifferences; ignoreDifferences is a field of Applications.",
        "Move the rules to spec.resourceIgnoreDifferences, or into the Application.",
        _misplaced_ignoring,
    ),
)
