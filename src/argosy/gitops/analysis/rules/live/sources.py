"""Live rules about sources: repositories, branches, folders, and who declares an Application.

In: a live view. Out: violations. Never: a repository URL with a password.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from argosy.gitops.analysis.difference_cause_kinds import CauseKind
from argosy.gitops.analysis.live_view import LiveApplication, LiveView, RepositorySecret
from argosy.gitops.analysis.rule import build_live_rule
from argosy.gitops.analysis.rule_violation import Severity, Violation
from argosy.gitops.analysis.rules.live.destinations import find_cluster_error

REPOSITORY_SECRET_LABEL: Final = "argocd.argoproj.io/secret-type=repository"
# argo, git: messages of Git servers that reject credentials
_CREDENTIALS_REJECTED: Final = re.compile(
    r"authentication (required|failed)|invalid (username|credentials)|could not read Username|"
    r"permission denied|access denied|unable to authenticate|authorization failed|"
    r"wants other credentials|these credentials may not see it|\b40[13]\b (unauthorized|forbidden)|"
    r"repository not found|ssh key is not known|host key verification failed|knownhosts: key",
    re.IGNORECASE,
)
_HOST_UNREACHABLE: Final = re.compile(
    r"no such host|could not resolve|cannot be resolved|connection (refused|reset|timed out)|i/o timeout|"
    r"network is unreachable|x509:|certificate is not trusted|the host does not answer",
    re.IGNORECASE,
)
_URL_CREDENTIALS: Final = re.compile(r"(?<=://)[^/@\s]+@")
_MISSING_PATH: Final = re.compile(r"path does not exist|there is no such folder", re.IGNORECASE)
_MISSING_FILE: Final = re.compile(r"([\w./-]+\.\w+|[\w.-]+/[\w./-]+) does not exist", re.IGNORECASE)
_MISSING_REF: Final = re.compile(
    r"unable to resolve .* to a commit|couldn't find remote ref|unknown revision|there is no branch, tag or commit",
    re.IGNORECASE,
)


_JQ_ERROR: Final = re.compile(r"jqPathExpressions: (?P<shown>.*?): (?P<why>jq |it takes )", re.DOTALL)
_RENDER_EXHAUSTED: Final = re.compile(
    r"^(?P<what>.*?); render (?P<how>timed out|ran out of memory) \((?P<times>\w+) time\); next try (?P<at>[\d:]+) UTC",
    re.DOTALL,
)
JQ_FIELD, RENDER_FIELD = "spec.ignoreDifferences", "spec.source"  # fields to report if no branch is the cause


def classify_source_error(message: str) -> str:
    """Return `refused`, `away`, or empty if the repository is not the cause."""
    if _CREDENTIALS_REJECTED.search(message):
        return "refused"
    return "away" if _HOST_UNREACHABLE.search(message) else ""


def _list_apps_with_source_errors(view: LiveView) -> Iterator[tuple[LiveApplication, str]]:
    for app in view.apps:
        errors = [
            message for kind, message in app.conditions if kind == "ComparisonError" and not _JQ_ERROR.match(message)
        ]
        error_message = next(iter(errors), "") or app.find_condition_message("InvalidSpecError")
        if error_message and not find_cluster_error(app):
            yield app, error_message


def _find_unreachable_repositories(view: LiveView) -> Iterator[Violation]:
    for app, message in _list_apps_with_source_errors(view):
        problem = classify_source_error(message)
        if not problem or not app.app.sources:
            continue
        url = _URL_CREDENTIALS.sub("", app.app.sources[0].repo_url)
        secret = _find_repository_secret(view, url)
        prefix = f"Git at {url} " + ("rejects the credentials" if problem == "refused" else "cannot be reached")
        if view.repositories is None:
            text, fix = (
                f"{prefix} (no permission to read its Secret)",
                f"check the Secrets labelled {REPOSITORY_SECRET_LABEL}",
            )
        elif secret is not None:
            problem_text = f", which {secret.problem}" if secret.problem else ""
            text = (
                f"{prefix} of Secret {secret.name}{problem_text}"
                if problem == "refused"
                else f"{prefix}; Secret {secret.name}"
            )
            fix = f"put valid credentials into Secret {secret.name}"
        else:
            text = f"{prefix}, and it has no repository Secret" if problem == "refused" else prefix
            fix = (
                f"create a Secret labelled {REPOSITORY_SECRET_LABEL} with the keys type: git and url: {url}, "
                "and its credentials"
            )
        if problem == "away":
            fix = "check whether the host responds from inside the cluster (DNS, proxy, certificate)"
        yield app.build_violation(f"{text}: {_shorten(message)}", fix, subject=url)


def _find_repository_secret(view: LiveView, url: str) -> RepositorySecret | None:
    """Find the Secret for this URL, else the credential template with the longest matching prefix."""
    normalized_url = url.removesuffix(".git").rstrip("/").lower()
    exact_matches = [
        secret
        for secret in view.repositories or ()
        if _normalize_url(secret) == normalized_url and not secret.is_template
    ]
    template_matches = [
        secret
        for secret in view.repositories or ()
        if secret.is_template and normalized_url.startswith(_normalize_url(secret))
    ]
    return (
        exact_matches[0] if exact_matches else max(template_matches, key=lambda secret: len(secret.url), default=None)
    )


def _normalize_url(secret: RepositorySecret) -> str:
    return _URL_CREDENTIALS.sub("", secret.url).removesuffix(".git").rstrip("/").lower()


def _shorten(message: str) -> str:
    text = _URL_CREDENTIALS.sub("", message.replace("\n", " ")).removeprefix("Failed to load target state: ")
    return text if len(text) <= 240 else f"{text[:239]}…"


def _find_invalid_jq_expressions(view: LiveView, app: LiveApplication) -> Iterator[Violation]:
    """Report each invalid jq expression and where it is written."""
    for message in (message for kind, message in app.conditions if kind == "ComparisonError"):
        if (match := _JQ_ERROR.match(message)) is None:
            continue
        expression, reason = match["shown"], message[match.start("why") :]
        field, location_text, edit_command = _find_jq_expression(view, app, expression)
        text = f"the jq expression {expression}{location_text} is invalid: {_shorten(reason)}"
        yield app.build_violation(
            text, f"correct the expression: {edit_command}; test it first: argosy app diff {app.name}", field=field
        )


def _find_jq_expression(view: LiveView, app: LiveApplication, quoted: str) -> tuple[str, str, str]:
    """Return the field, its description, and the command to edit it. `quoted` is the quoted expression, maybe
    truncated.
    """
    for index, rule in enumerate(app.app.ignore_rules):
        for position, expression in enumerate(rule.jq_paths):
            if repr(expression).startswith(quoted):
                field = f"{JQ_FIELD}[{index}].jqPathExpressions[{position}]"
                return field, f" in {field}", f"argosy app edit {app.name}, or in Git if another Application manages it"
    text = quoted.strip("'\"")
    edit_command = f"argosy kubectl edit configmap/argocd-cm -n {view.settings.namespace or 'argocd'}"
    for key, value in (view.settings.data or {}).items():
        if key.startswith("resource.customizations") and text in value:
            return JQ_FIELD, f" in {key} of argocd-cm", edit_command
    return JQ_FIELD, "", f"argosy app edit {app.name}; or for all Applications: {edit_command}"


def _build_exhaustion_violation(app: LiveApplication, match: re.Match[str]) -> Violation:
    text = f"its render {match['how']} ({match['times']} time): {_shorten(match['what'])}; next retry {match['at']} UTC"
    fix = f"make the source smaller or simpler, push it, and retry now: argosy app get {app.name} --hard-refresh"
    return app.build_violation(text, fix, field=RENDER_FIELD)


def _find_render_failures(view: LiveView) -> Iterator[Violation]:
    """argo: ComparisonError means that rendering failed; ref and path are checked first."""
    for app in view.apps:
        yield from _find_invalid_jq_expressions(view, app)
    for app, message in _list_apps_with_source_errors(view):
        if classify_source_error(message):
            continue
        if exhausted := _RENDER_EXHAUSTED.match(message):
            yield _build_exhaustion_violation(app, exhausted)
            continue
        source = app.app.sources[0] if app.app.sources else None
        ref, path = (source.ref, source.path) if source else ("", "")
        is_stale_branch = app.render_failure is not None and app.render_failure.kind is CauseKind.STALE_BRANCH
        branch = app.default_branch
        is_missing_ref = _MISSING_REF.search(message)
        if not app.find_condition_message("ComparisonError"):
            text = f"the Application's spec is invalid: {_shorten(message)}"
            fix = "correct its spec, or its project"
        elif is_stale_branch and branch:
            prefix = (
                f"targetRevision {ref} does not exist in the repository"
                if is_missing_ref
                else f"targetRevision {ref}: "
            )
            text = f"{prefix}{'' if is_missing_ref else _describe_render_error(message, path)}; {branch} renders"
            fix = f"follow {branch}: argosy align {app.name}, or argosy app set {app.name} --revision {branch}"
        elif is_missing_ref:
            text = f"targetRevision {ref} does not exist in the repository: {_shorten(message)}"
            fix = "use an existing branch or tag, or push it"
        elif path and _MISSING_PATH.search(message):
            text = f"targetRevision {ref}: {_describe_render_error(message, path)}"
            fix = f"commit the folder {path} to {ref or 'the default branch'}, or follow a branch that has it"
        else:
            text = f"manifests cannot be rendered: {_shorten(message)}"
            fix = f"check targetRevision and path, then the error: argosy app manifests {app.name}"
        yield app.build_violation(text, fix, field="spec.source.targetRevision")


def _describe_render_error(message: str, path: str) -> str:
    if path and _MISSING_PATH.search(message):
        return f"path {path} not in branch"
    match = _MISSING_FILE.search(message)
    return f"path {match[1]} not in branch" if match else f"cannot be rendered ({_shorten(message)})"


def _find_duplicate_or_stale_declarations(view: LiveView) -> Iterator[Violation]:
    yield from _find_duplicate_declarations(view)
    by_name = {app.name: app for app in view.apps}
    for app in view.apps:
        parent = by_name.get(app.parent)
        if parent is None or parent is app or not parent.app.sources:
            continue
        ref, branch = parent.app.sources[0].ref, parent.default_branch
        is_first = app is next(other for other in view.apps if other.parent == parent.name)
        if is_first and branch and ref.removeprefix("refs/heads/") not in (branch, "HEAD", ""):
            text = (
                f"it creates {_render_child_count(view, parent)} from {ref}, not from {branch}: their "
                "manifests are stale"
            )
            fix = f"set {parent.name} to follow {branch}, sync it first, wait 30 to 60 s, then sync the others"
            yield parent.build_violation(text, fix, field="spec.source.targetRevision", severity=Severity.WARNING)


def _render_child_count(view: LiveView, parent: LiveApplication) -> str:
    count = sum(app.parent == parent.name for app in view.apps)
    return f"{count} Application{'' if count == 1 else 's'}"


def _find_duplicate_declarations(view: LiveView) -> Iterator[Violation]:
    """Report an Application that two other Applications manage."""
    parents_by_app: dict[tuple[str, str], list[LiveApplication]] = defaultdict(list)
    for app in view.apps:
        for resource in app.resources:
            if resource.key.kind == "Application" and resource.key.group == "argoproj.io":
                parents_by_app[resource.key.namespace, resource.key.name].append(app)
    for (_, name), parents in parents_by_app.items():
        if len(parents) > 1:
            names = " and ".join(parent.name for parent in parents)
            text = f"Application {name} is declared twice: {names} both manage it, and each reverts the other's changes"
            yield parents[0].build_violation(text, f"declare {name} only once", subject=f"Application/{name}")


RULES: Final = (
    build_live_rule(
        "AGY505",
        Severity.ERROR,
        "A Git repository rejects the credentials, or cannot be reached",
        "The Application is neither compared nor synced; the cluster keeps its objects.",
        "Argo CD's ComparisonError has the error of the Git server or the network; the Secret is the one labelled for"
        " this URL.",
        "Correct the Secret, or create one with the label argocd.argoproj.io/secret-type=repository and the keys type"
        " and url beside the credentials.",
        _find_unreachable_repositories,
    ),
    build_live_rule(
        "AGY509",
        Severity.ERROR,
        "Manifests cannot be rendered",
        "Argo CD shows a ComparisonError: nothing is compared or synced.",
        "Argo CD reports it in a condition; if another branch is recommended, it was rendered here successfully.",
        "Follow the finding: correct a jq expression of ignoreDifferences, make a source smaller whose render timed"
        " out, or check targetRevision and path: a branch that was merged and deleted, or does not have the folder.",
        _find_render_failures,
    ),
    build_live_rule(
        "AGY516",
        Severity.ERROR,
        "An Application is declared twice, or on the wrong branch",
        "Two parents revert each other's changes; a root on another branch keeps manifests stale.",
        "Both Applications manage the same Application; or the root's branch is not the default branch of its"
        " repository.",
        "Declare it only once. Set the root to follow the default branch; sync the root first, then the others.",
        _find_duplicate_or_stale_declarations,
    ),
)
