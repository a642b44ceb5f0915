"""`argosy app create|set|unset`: write Applications from the same flags as argocd."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy.cli.parser import Mistyped
from argosy.cli.verbs import Commands, add_truth, at_desk, is_compat, talk, verb
from argosy.gitops.workspace.source_flags import FLAGS

if TYPE_CHECKING:
    from argosy.gitops.application_client.client import Desk


NO_CHANGE = frozenset({
    "--command", "--part", "--run", "--name", "--app-namespace", "--context", "--kubeconfig", "--data-dir", "--compat",
    "--validate", "--source-position",
})  # fmt: skip


def add_to(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = verb(
        parts, "create", "create an Application", run_create, named="none",
        examples=("create models --repo https://git.example/ml --path overlays/dev --dest-namespace ml",
                  "create -f application.yaml --upsert"),
    )  # fmt: skip
    parser.add_argument(
        "name", nargs="?", default="", metavar="NAME", help="name of the Application (default: the name in the file)"
    )
    add = parser.add_argument
    add("-f", "--file", default="", metavar="FILE", help="read the Application from this file (- is standard input)")
    add("--name", dest="other_name", default="", metavar="NAME", help="same as NAME")
    add("-l", "--label", action="append", default=[], metavar="NAME=VALUE", help="a label; repeatable")
    add("--annotations", action="append", default=[], metavar="NAME=VALUE", help="an annotation; repeatable")
    add("--upsert", action="store_true", help="overwrite an existing Application")
    add(
        "--set-finalizer",
        action="store_true",
        help="set the finalizer: deleting the Application also deletes its objects",
    )
    add_truth(parser, "--validate", "refuse what its project does not permit (default: true)", usual=True)
    add_spec(parser)
    parser = verb(
        parts, "set", "change an Application", run_set,
        examples=("set models --revision v2", "set models --sync-policy automated --self-heal",
                  "set models --kustomize-image predictor=registry.example/predictor:2"),
    )  # fmt: skip
    _add_position(parser)
    add_truth(parser, "--validate", "refuse what its project does not permit (default: true)", usual=True)
    add_spec(parser)
    parser = verb(
        parts, "unset", "remove options of an Application's source", run_unset,
        examples=("unset models --nameprefix", "unset models --parameter replicas --values values-dev.yaml"),
    )  # fmt: skip
    _add_position(parser)
    _add_unset(parser)


def _add_position(parser: argparse.ArgumentParser) -> None:
    about = "position of the source; the first is 1"
    parser.add_argument("--source-position", type=int, metavar="N", help=about)


def add_spec(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    for flag, shown, about in (
        ("--repo", "URL", "the repository"),
        ("--path", "PATH", "the folder in the repository"),
        ("--revision", "R", "a branch, tag or commit"),
        ("--helm-chart", "NAME", "a chart of a Helm repository, instead of a path"),
        ("--ref", "NAME", "a name by which other sources refer to its files"),
        ("--source-name", "NAME", "the name of a source"),
        ("--tag-prefix", "TEXT", "only tags with this prefix are versions"),
        ("--project", "NAME", "the project"),
        ("--dest-server", "URL", "the cluster, such as https://kubernetes.default.svc"),
        ("--dest-name", "NAME", "the cluster by its name, such as in-cluster"),
        ("--dest-namespace", "NS", "the namespace to deliver to"),
        ("--sync-policy", "WORD", "automated, or none"),
        ("--sync-retry-backoff-duration", "D", "pause before the first retry, such as 5s"),
        ("--sync-retry-backoff-max-duration", "D", "longest pause, such as 3m"),
    ):
        add(flag, metavar=shown, help=about)
    for flag, about in (
        ("--auto-prune", "automated: delete objects that are not in Git any more"),
        ("--self-heal", "automated: revert changes in the cluster"),
        ("--allow-empty", "automated: sync even if all objects would be deleted"),
        ("--sync-retry-refresh", "use the latest revision for retries"),
    ):
        add_truth(parser, flag, about)
    about = "a sync option, such as CreateNamespace=true; a leading ! removes it; repeatable"
    add("--sync-option", action="append", metavar="OPTION", help=about)
    add("--sync-retry-limit", type=int, metavar="N", help="maximum number of retries (below zero: no limit)")
    add("--sync-retry-backoff-factor", type=int, metavar="N", help="factor by which each pause grows")
    add("--revision-history-limit", type=int, metavar="N", help="number of deployments kept in the history")
    for each in FLAGS:
        if not each.shown:
            add_truth(parser, each.name, each.about)
        else:
            add(each.name, action="append" if each.is_repeated else "store", metavar=each.shown, help=each.about)
    about = "Helm: a local file whose values are stored in the Application"
    add("--values-literal-file", metavar="FILE", help=about)
    about = "same as --helm-set; repeatable"
    add("-p", "--parameter", action="append", default=[], metavar="NAME=VALUE", help=about)


def _add_unset(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    for flag, shown, about in (
        ("--parameter", "NAME", "a Helm value; repeatable"),
        ("--values", "FILE", "a file of Helm values; repeatable"),
        ("--kustomize-image", "NAME", "an image; repeatable"),
        ("--kustomize-replica", "NAME", "a replica count; repeatable"),
        ("--plugin-env", "NAME", "an environment variable of a plugin; repeatable"),
    ):
        add(flag, action="append", default=[], metavar=shown, help=about)
    for flag, about in (
        ("--values-literal", "Helm values stored in the Application"),
        ("--ignore-missing-value-files", "ignoring missing values files"),
        ("--pass-credentials", "passing credentials to all domains"),
        ("--nameprefix", "the Kustomize name prefix"),
        ("--namesuffix", "the Kustomize name suffix"),
        ("--kustomize-version", "the Kustomize version"),
        ("--kustomize-namespace", "the Kustomize namespace"),
        ("--ignore-missing-components", "ignoring missing components"),
        ("--ref", "the name by which other sources refer to its files"),
    ):
        add(flag, action="store_true", help=about)
    add("--source-name", metavar="NAME", help="name of the source")


def given_flags(chosen: argparse.Namespace) -> dict[str, Any]:
    given = {f"--{name.replace('_', '-')}": value for name, value in vars(chosen).items()}
    extra = given.pop("--parameter", None) or []
    if extra:
        given["--helm-set"] = [*(given.get("--helm-set") or []), *extra]
    if given.get("--values-literal-file"):
        given["--values-literal-file"] = Path(given["--values-literal-file"]).read_text()
    return given


def run_create(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.errors import UserError
        from argosy.gitops.application_client.validation import check_project
        from argosy.gitops.application_client.writes import create

        manifest = _manifest(chosen, desk)
        name = manifest["metadata"].get("name")
        if not name:
            raise UserError("missing name of the Application; add it after create")
        if chosen.validate:
            await check_project(desk, manifest)
        word = await create(desk, manifest, replaces=chosen.upsert)
        print(f"application '{name}' {word}")
        if word == "created":
            talk(f"next: argosy app get {name}")
        return 0

    return at_desk(chosen, work, writes=True)


def _manifest(chosen: argparse.Namespace, desk: Desk) -> dict[str, Any]:
    from argosy.gitops.application_client.spec_flags import HERE, changed, new_application
    from argosy.gitops.application_client.writes import content_of, read_file

    name, given = chosen.name or chosen.other_name, given_flags(chosen)
    if not chosen.file:
        if not given.get("--dest-name") and not given.get("--dest-server"):
            given["--dest-server"] = HERE  # the cluster of the controller
        return new_application(name, desk.namespace, given)
    content = content_of(chosen.file, lambda: sys.stdin.buffer.read() if sys.stdin else b"")
    found = changed(read_file(chosen.file, content), given)
    metadata = {**(found.get("metadata") or {}), **({"name": name} if name else {})}
    metadata.setdefault("namespace", desk.namespace)
    return {**found, "metadata": metadata}


def run_set(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.gitops.application_client.spec_flags import changed
        from argosy.gitops.application_client.validation import check_project
        from argosy.gitops.application_client.writes import change

        app, given = await desk.find(chosen.name), given_flags(chosen)
        if is_compat(chosen) and not has_flags(given):
            talk("argosy: please set at least one option to update\nnext: argosy app set --help")
            raise Mistyped("no option")  # argo: a usage error
        if chosen.validate:
            await check_project(desk, changed(app.wire, given, chosen.source_position))
        has_changed = await change(desk, app, lambda wire: changed(wire, given, chosen.source_position))
        _tell_change(chosen, app.name, has_changed)
        return 0

    return at_desk(chosen, work, writes=True)


def run_unset(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.gitops.application_client.spec_flags import without
        from argosy.gitops.application_client.writes import change

        given = {f"--{name.replace('_', '-')}": value for name, value in vars(chosen).items()}
        app = await desk.find(chosen.name)
        has_changed = await change(desk, app, lambda wire: without(wire, given, chosen.source_position))
        _tell_change(chosen, app.name, has_changed)
        return 0

    return at_desk(chosen, work, writes=True)


def has_flags(given: dict[str, Any]) -> bool:
    """True if a flag was given that changes an Application."""
    return any(value not in (None, False, [], "") for flag, value in given.items() if flag not in NO_CHANGE)


def _tell_change(chosen: argparse.Namespace, name: str, has_changed: bool) -> None:
    """argo: Prints nothing to stdout."""
    say = talk if is_compat(chosen) else print
    say(f"application '{name}' {'updated' if has_changed else 'unchanged'}")
