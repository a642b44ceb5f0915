"""Live rules about sources: repositories, branches, folders, and who declares an Application.

In: a live view. Out: violations. Never: a repository URL with a password.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from argosy.gitops.analysis.cause import CauseKind
from argosy.gitops.analysis.live_view import LiveApp, LiveView, RepositorySecret
from argosy.gitops.analysis.rule import live_rule
from argosy.gitops.analysis.rules.live.destinations import cluster_trouble
from argosy.gitops.analysis.violation import Severity, Sight

LABEL: Final = "argocd.argoproj.io/secret-type=repository"
# argo, git: messages of Git servers that reject credentials
_REFUSED: Final = re.compile(
    r"authentication (required|failed)|invalid (username|credentials)|could not read Username|"
    r"permission denied|access denied|unable to authenticate|authorization failed|"
    r"wants other credentials|these credentials may not see it|\b40[13]\b (unauthorized|forbidden)|"
    r"repository not found|ssh key is not known|host key verification failed|knownhosts: key",
    re.IGNORECASE,
)
_AWAY: Final = re.compile(
    r"no such host|could not resolve|cannot be resolved|connection (refused|reset|timed out)|i/o timeout|"
    r"network is unreachable|x509:|certificate is not trusted|the host does not answer",
    re.IGNORECASE,
)
_CREDENTIALS: Final = re.compile(r"(?<=://)[^/@\s]+@")
_PATH: Final = re.compile(r"path does not exist|there is no such folder", re.IGNORECASE)
_FILE: Final = re.compile(r"([\w./-]+\.\w+|[\w.-]+/[\w./-]+) does not exist", re.IGNORECASE)
_REF: Final = re.compile(
    r"unable to resolve .* to a commit|couldn't find remote ref|unknown revision|there is no branch, tag or commit",
    re.IGNORECASE,
)


_JQ: Final = re.compile(r"jqPathExpressions: (?P<shown>.*?): (?P<why>jq |it takes )", re.DOTALL)
_EXHAUSTED: Final = re.compile(
    r"^(?P<what>.*?); render (?P<how>timed out|ran out of memory) \((?P<times>\w+) time\); next try (?P<at>[\d:]+) UTC",
    re.DOTALL,
)
JQ_FIELD, RENDER_FIELD = "spec.ignoreDifferences", "spec.source"  # fields to report if no branch is the cause


def source_trouble(message: str) -> str:
    """Return `refused`, `away`, or empty if the repository is not the cause."""
    if _REFUSED.search(message):
        return "refused"
    return "away" if _AWAY.search(message) else ""


def _broken(view: LiveView) -> Iterator[tuple[LiveApp, str]]:
    for app in view.apps:
        errors = [message for kind, message in app.conditions if kind == "ComparisonError" and not _JQ.match(message)]
        said = next(iter(errors), "") or app.said("InvalidSpecError")
        if said and not cluster_trouble(app):
            yield app, said


def _unreachable(view: LiveView) -> Iterator[Sight]:
    for app, said in _broken(view):
        trouble = source_trouble(said)
        if not trouble or not app.app.sources:
            continue
        url = _CREDENTIALS.sub("", app.app.sources[0].repo_url)
        secret = _secret(view, url)
        lead = f"Git at {url} " + ("rejects the credentials" if trouble == "refused" else "cannot be reached")
        if view.repositories is None:
            text, fix = f"{lead} (no permission to read its Secret)", f"check the Secrets labelled {LABEL}"
        elif secret is not None:
            fault = f", which {secret.fault}" if secret.fault else ""
            text = f"{lead} of Secret {secret.name}{fault}" if trouble == "refused" else f"{lead}; Secret {secret.name}"
            fix = f"put valid credentials into Secret {secret.name}"
        else:
            text = f"{lead}, and it has no repository Secret" if trouble == "refused" else lead
            fix = f"create a Secret labelled {LABEL} with the keys type: git and url: {url}, and its credentials"
        if trouble == "away":
            fix = "check whether the host responds from inside the cluster (DNS, proxy, certificate)"
        yield app.sight(f"{text}: {_short(said)}", fix, subject=url)


def _secret(view: LiveView, url: str) -> RepositorySecret | None:
    """Find the Secret for this URL, else the credential template with the longest matching prefix."""
    plain = url.removesuffix(".git").rstrip("/").lower()
    found = [each for each in view.repositories or () if _plain(each) == plain and not each.is_template]
    above = [each for each in view.repositories or () if each.is_template and plain.startswith(_plain(each))]
    return found[0] if found else max(above, key=lambda each: len(each.url), default=None)


def _plain(secret: RepositorySecret) -> str:
    return _CREDENTIALS.sub("", secret.url).removesuffix(".git").rstrip("/").lower()


def _short(said: str) -> str:
    text = _CREDENTIALS.sub("", said.replace("\n", " ")).removeprefix("Failed to load target state: ")
    return text if len(text) <= 240 else f"{text[:239]}…"


def _bad_expressions(view: LiveView, app: LiveApp) -> Iterator[Sight]:
    """Report each invalid jq expression and where it is written."""
    for message in (message for kind, message in app.conditions if kind == "ComparisonError"):
        if (match := _JQ.match(message)) is None:
            continue
        shown, why = match["shown"], message[match.start("why") :]
        field, place, edit = _find_expression(view, app, shown)
        text = f"the jq expression {shown}{place} is invalid: {_short(why)}"
        yield app.sight(text, f"correct the expression: {edit}; test it first: argosy app diff {app.name}", field=field)


def _find_expression(view: LiveView, app: LiveApp, shown: str) -> tuple[str, str, str]:
    """Return the field, its description, and the command to edit it. `quoted` is the quoted expression, maybe
    truncated.
    """
    for number, rule in enumerate(app.app.ignored):
        for place, expression in enumerate(rule.jq_paths):
            if repr(expression).startswith(shown):
                field = f"{JQ_FIELD}[{number}].jqPathExpressions[{place}]"
                return field, f" in {field}", f"argosy app edit {app.name}, or in Git if another Application manages it"
    text = shown.strip("'\"")
    edit = f"argosy kubectl edit configmap/argocd-cm -n {view.settings.namespace or 'argocd'}"
    for key, value in (view.settings.data or {}).items():
        if key.startswith("resource.customizations") and text in value:
            return JQ_FIELD, f" in {key} of argocd-cm", edit
    return JQ_FIELD, "", f"argosy app edit {app.name}; or for all Applications: {edit}"


def _exhausted(app: LiveApp, match: re.Match[str]) -> Sight:
    text = f"its render {match['how']} ({match['times']} time): {_short(match['what'])}; next retry {match['at']} UTC"
    fix = f"make the source smaller or simpler, push it, and retry now: argosy app get {app.name} --hard-refresh"
    return app.sight(text, fix, field=RENDER_FIELD)


def _unmade(view: LiveView) -> Iterator[Sight]:
    """argo: ComparisonError means that rendering failed; ref and path are checked first."""
    for app in view.apps:
        yield from _bad_expressions(view, app)
    for app, said in _broken(view):
        if source_trouble(said):
            continue
        if exhausted := _EXHAUSTED.match(said):
            yield _exhausted(app, exhausted)
            continue
        source = app.app.sources[0] if app.app.sources else None
        ref, path = (source.ref, source.path) if source else ("", "")
        stale = app.unrendered is not None and app.unrendered.kind is CauseKind.STALE_BRANCH
        branch = app.default_branch
        is_lost = _REF.search(said)
        if not app.said("ComparisonError"):
            text = f"the Application's spec is invalid: {_short(said)}"
            fix = "correct its spec, or its project"
        elif stale and branch:
            what = f"targetRevision {ref} does not exist in the repository" if is_lost else f"targetRevision {ref}: "
            text = f"{what}{'' if is_lost else _what(said, path)}; {branch} renders"
            fix = f"follow {branch}: argosy align {app.name}, or argosy app set {app.name} --revision {branch}"
        elif is_lost:
            text = f"targetRevision {ref} does not exist in the repository: {_short(said)}"
            fix = "use an existing branch or tag, or push it"
        elif path and _PATH.search(said):
            text = f"targetRevision {ref}: {_what(said, path)}"
            fix = f"commit the folder {path} to {ref or 'the default branch'}, or follow a branch that has it"
        else:
            text = f"manifests cannot be rendered: {_short(said)}"
            fix = f"check targetRevision and path, then the error: argosy app manifests {app.name}"
        yield app.sight(text, fix, field="spec.source.targetRevision")


def _what(said: str, path: str) -> str:
    if path and _PATH.search(said):
        return f"path {path} not in branch"
    named = _FILE.search(said)
    return f"path {named[1]} not in branch" if named else f"cannot be rendered ({_short(said)})"


def _definitions(view: LiveView) -> Iterator[Sight]:
    yield from _twice(view)
    by_name = {app.name: app for app in view.apps}
    for app in view.apps:
        parent = by_name.get(app.parent)
        if parent is None or parent is app or not parent.app.sources:
            continue
        ref, branch = parent.app.sources[0].ref, parent.default_branch
        is_first = app is next(each for each in view.apps if each.parent == parent.name)
        if is_first and branch and ref.removeprefix("refs/heads/") not in (branch, "HEAD", ""):
            text = f"it creates {_counted(view, parent)} from {ref}, not from {branch}: their manifests are stale"
            fix = f"set {parent.name} to follow {branch}, sync it first, wait 30 to 60 s, then sync the others"
            yield parent.sight(text, fix, field="spec.source.targetRevision", severity=Severity.WARNING)


def _counted(view: LiveView, parent: LiveApp) -> str:
    count = sum(each.parent == parent.name for each in view.apps)
    return f"{count} Application{'' if count == 1 else 's'}"


def _twice(view: LiveView) -> Iterator[Sight]:
    """Report an Application that two other Applications manage."""
    makers: dict[tuple[str, str], list[LiveApp]] = defaultdict(list)
    for app in view.apps:
        for row in app.rows:
            if row.key.kind == "Application" and row.key.group == "argoproj.io":
                makers[row.key.namespace, row.key.name].append(app)
    for (_, name), found in makers.items():
        if len(found) > 1:
            names = " and ".join(each.name for each in found)
            text = f"Application {name} is declared twice: {names} both manage it, and each reverts the other's changes"
            yield found[0].sight(text, f"declare {name} only once", subject=f"Application/{name}")


RULES: Final = (
    live_rule(
        "AGY505",
        Severity.ERROR,
        "A Git repository rejects the credentials, or cannot be reached",
        "The Application is neither compared nor synced; the cluster keeps its objects.",
        "Argo CD's ComparisonError has the error of the Git server or the network; the Secret is the one labelled for"
        " this URL.",
        "Correct the Secret, or create one with the label argocd.argoproj.io/secret-type=repository and the keys type"
        " and url beside the credentials.",
        _unreachable,
    ),
    live_rule(
        "AGY509",
        Severity.ERROR,
        "Manifests cannot be rendered",
        "Argo CD shows a ComparisonError: nothing is compared or synced.",
        "Argo CD reports it in a condition; if another branch is recommended, it was rendered here successfully.",
        "Follow the finding: correct a jq expression of ignoreDifferences, make a source smaller whose render timed"
        " out, or check targetRevision and path: a branch that was merged and deleted, or does not have the folder.",
        _unmade,
    ),
    live_rule(
        "AGY516",
        Severity.ERROR,
        "An Application is declared twice, or on the wrong branch",
        "Two parents revert each other's changes; a root on another branch keeps manifests stale.",
        "Both Applications manage the same Application; or the root's branch is not the default branch of its"
        " repository.",
        "Declare it only once. Set the root to follow the default branch; sync the root first, then the others.",
        _definitions,
    ),
)
