"""`argosy proj create|set|edit|delete|add-…|remove-…|allow-…|deny-…`: change projects."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from argosy.cli.verbs import add_truth, asked, at_desk, can_ask, is_compat, talk
from argosy.errors import UserError
from argosy.features.projects.cli_flags import PROJECT, Commands, changed, verb

if TYPE_CHECKING:
    from argosy.gitops.application_client.client import Desk

LISTS = (
    ("-d", "--dest", "SERVER,NAMESPACE", "a destination; repeatable"),
    ("-s", "--src", "URL", "a repository; repeatable"),
    ("", "--signature-keys", "ID", "GPG key that must sign commits; repeatable"),
    ("", "--allow-cluster-resource", "KIND", "allow a cluster-scoped kind, such as /Namespace; repeatable"),
    ("", "--deny-cluster-resource", "KIND", "deny a cluster-scoped kind; repeatable"),
    ("", "--allow-namespaced-resource", "KIND", "allow a namespaced kind, such as apps/Deployment; repeatable"),
    ("", "--deny-namespaced-resource", "KIND", "deny a namespaced kind; repeatable"),
    ("", "--source-namespaces", "NS", "namespace that Applications may be in; repeatable"),
    ("", "--dest-service-accounts", "SERVER,NS,NAME", "service account for a destination; repeatable"),
)
SERVER = ("SERVER", "address of the cluster; with --name, its name")
NAMESPACE = ("NAMESPACE", "namespace; may contain *")
# command → its arguments, spec field, noun for messages, fields of an entry (none: a string)
ENTRIES = (
    ("source", (("URL", "the repository"),), "sourceRepos", "source repository", ()),
    ("source-namespace", (NAMESPACE,), "sourceNamespaces", "source namespace", ()),
    ("signature-key", (("KEY-ID", "the key"),), "signatureKeys", "signature key", ("keyID",)),
    ("destination-service-account", (SERVER, NAMESPACE, ("ACCOUNT", "the service account")),
     "destinationServiceAccounts", "destination service account", ("server", "namespace", "defaultServiceAccount")),
)  # fmt: skip
GROUP_KIND = (("GROUP", "API group; '' for the core group"), ("KIND", "the kind"))


def add_changing(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = verb(
        parts, "create", "create a project", run_create, named=(),
        examples=("create ml --src https://git.example/ml --dest https://kubernetes.default.svc,ml",
                  "create -f project.yaml --upsert"),
    )  # fmt: skip
    parser.add_argument(
        "project", nargs="?", default="", metavar="PROJECT", help="name of the project (default: from the file)"
    )
    about = "read the AppProject from this file (- is standard input)"
    parser.add_argument("-f", "--file", default="", metavar="FILE", help=about)
    parser.add_argument("--upsert", action="store_true", help="overwrite an existing project")
    _add_spec(parser)
    parser = verb(
        parts, "set", "change a project", run_set,
        examples=("set ml --description 'models'", "set ml --src https://git.example/ml --src https://git.example/lib"),
    )  # fmt: skip
    _add_spec(parser)
    verb(parts, "edit", "change a project's spec in an editor", run_edit, examples=("edit ml", "edit default"))
    parser = verb(
        parts, "delete", "delete projects without Applications", run_delete, named=(),
        examples=("delete ml", "delete ml lib -y"),
    )  # fmt: skip
    parser.add_argument("projects", nargs="+", metavar="PROJECT", help="the projects")
    parser.add_argument("-y", "--yes", action="store_true", help="skip the confirmation prompt")
    _add_entries(parts)
    _add_kinds(parts)


def _add_spec(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--description", metavar="TEXT", help="description of the project")
    for short, flag, shown, about in LISTS:
        names = [short, flag] if short else [flag]
        parser.add_argument(*names, action="append", default=[], metavar=shown, help=about)
    parser.add_argument("--orphaned-resources", action="store_true", help="enable orphaned resource monitoring")
    add_truth(parser, "--orphaned-resources-warn", "warn about orphaned resources")


def _add_entries(parts: Commands[argparse.ArgumentParser]) -> None:
    for adds, lead, about in ((True, "add", "allow a project"), (False, "remove", "no longer allow a project")):
        for noun, arguments, field, what, fields in ENTRIES:
            name = f"{lead}-{noun}"
            run = partial(_change_entry, adds, arguments, field, what, fields)
            example = " ".join(argument.lower() for argument, _ in arguments)
            verb(parts, name, f"{about} a {what}", run, named=(PROJECT, *arguments),
                 examples=(f"{name} ml {example}", f"{name} default {example}"))  # fmt: skip
        name = f"{lead}-destination"
        parser = verb(
            parts, name, f"{about} a destination", partial(_change_destination, adds),
            named=(PROJECT, SERVER, NAMESPACE),
            examples=(f"{name} ml https://kubernetes.default.svc ml", f"{name} ml in-cluster ml --name"),
        )  # fmt: skip
        parser.add_argument("--name", dest="is_name", action="store_true", help="SERVER is a cluster's name")
        name = f"{lead}-orphaned-ignore"
        about = f"{'ignore' if adds else 'no longer ignore'} a kind in orphaned resource monitoring"
        parser = verb(
            parts, name, about, partial(_change_orphans, adds), named=(PROJECT, *GROUP_KIND),
            examples=(f"{name} ml '' ConfigMap", f"{name} ml batch Job --name 'train-*'"),
        )  # fmt: skip
        parser.add_argument("--name", default="", metavar="NAME", help="only objects with this name; may contain *")


def _add_kinds(parts: Commands[argparse.ArgumentParser]) -> None:
    for allows, lead in ((True, "allow"), (False, "deny")):
        for is_cluster, noun in ((True, "cluster"), (False, "namespace")):
            name = f"{lead}-{noun}-resource"
            usual = "allow" if is_cluster else "deny"
            parser = verb(
                parts, name, f"{lead} a {'cluster-scoped' if is_cluster else 'namespaced'} kind in a project",
                partial(_change_kind, allows, is_cluster), named=(PROJECT, *GROUP_KIND),
                examples=(f"{name} ml '' {'Namespace' if is_cluster else 'Secret'}", f"{name} ml batch Job -l allow"),
            )  # fmt: skip
            if is_cluster:
                parser.add_argument("name", nargs="?", default="", metavar="NAME", help="only objects with this name")
            choices, about = ("allow", "deny", "white", "black"), f"change this list (default: {usual})"
            parser.add_argument("-l", "--list", choices=choices, default=usual, help=about)


def run_create(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.gitops.application_client.projects import create_project

        manifest = _manifest(chosen, desk)
        word = await create_project(desk, manifest, replaces=chosen.upsert)
        talk(f"project '{manifest['metadata']['name']}' {word}")
        return 0

    return at_desk(chosen, work, writes=True)


def _manifest(chosen: argparse.Namespace, desk: Desk) -> dict[str, Any]:
    from argosy.gitops.application_client.project_specs import typed_spec
    from argosy.gitops.application_client.projects import new_project
    from argosy.gitops.application_client.writes import content_of
    from argosy.kube.objects import read_manifests

    spec, name, metadata = typed_spec(vars(chosen)), chosen.project, {}
    if chosen.file:
        content = content_of(chosen.file, lambda: sys.stdin.buffer.read() if sys.stdin else b"")
        found = [each for each in read_manifests(content, where=chosen.file) if each.get("kind") == "AppProject"]
        if len(found) != 1:
            told = f"contains {len(found)} AppProjects; pass a file with exactly one"
            raise UserError(told, where=chosen.file)
        metadata = found[0]["metadata"]
        name, spec = name or metadata["name"], {**(found[0].get("spec") or {}), **spec}
    if not name:
        raise UserError("the project has no name; pass it as an argument")
    made = new_project(name, desk.namespace, spec)
    return {**made, "metadata": {**metadata, **made["metadata"]}}


def run_set(chosen: argparse.Namespace) -> int:
    from argosy.gitops.application_client.project_specs import typed_spec

    typed = typed_spec(vars(chosen))
    if not typed:
        raise UserError("nothing to change; pass at least one option, such as --description TEXT")
    return changed(chosen, lambda spec: {**spec, **typed})


def run_edit(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.cli.editor import edited
        from argosy.gitops.application_client.projects import change_project, project_named

        before = (await project_named(desk, chosen.project)).get("spec") or {}
        with edited(chosen.project, before) as spec:
            if not isinstance(spec, dict):
                raise UserError(f"{chosen.project}: the edited text is not a map of fields; correct it")
            has_changed = await change_project(desk, chosen.project, lambda _: spec)
        talk(f"project '{chosen.project}' {'updated' if has_changed else 'unchanged'}")
        return 0

    return at_desk(chosen, work, writes=True)


def run_delete(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.gitops.application_client.projects import delete_project

        for name in chosen.projects:
            if not chosen.yes and not is_compat(chosen):
                if not can_ask():
                    raise UserError(f"{name}: cannot ask for confirmation without a terminal; pass -y")
                if not asked(f"Are you sure you want to delete {name}?"):
                    talk(f"The command to delete {name} was cancelled")
                    continue
            await delete_project(desk, name)
            talk(f"project '{name}' deleted")
        return 0

    return at_desk(chosen, work, writes=True)


def _change_entry(
    adds: bool, arguments: Any, field: str, what: str, fields: tuple[str, ...], chosen: argparse.Namespace
) -> int:
    from argosy.gitops.application_client.project_specs import added, removed

    typed = [getattr(chosen, argument.lower().replace("-", "_")) for argument, _ in arguments]
    entry = dict(zip(fields, typed, strict=True)) if fields else typed[0]
    return changed(chosen, lambda spec: (added if adds else removed)(spec, field, entry, what))


def _change_destination(adds: bool, chosen: argparse.Namespace) -> int:
    from argosy.gitops.application_client.project_specs import added, destination, removed

    entry = destination(chosen.server, chosen.namespace, is_name=chosen.is_name)
    return changed(chosen, lambda spec: (added if adds else removed)(spec, "destinations", entry, "destination"))


def _change_orphans(adds: bool, chosen: argparse.Namespace) -> int:
    from argosy.gitops.application_client.project_specs import with_orphan_rule

    rule = {"group": chosen.group, "kind": chosen.kind, **({"name": chosen.name} if chosen.name else {})}
    return changed(chosen, lambda spec: with_orphan_rule(spec, rule, adds=adds))


def _change_kind(allows: bool, is_cluster: bool, chosen: argparse.Namespace) -> int:
    """argo: adding a listed kind, or removing an unlisted one, is not an error."""
    from argosy.gitops.application_client.project_specs import entries, place_of

    place = place_of(allows=allows, is_cluster=is_cluster, which=chosen.list)
    name = getattr(chosen, "name", "")
    entry = {"group": chosen.group, "kind": chosen.kind, **({"name": name} if name else {})}

    def make(spec: dict[str, Any]) -> dict[str, Any]:
        others = [each for each in entries(spec, place.field) if each != entry]
        if place.adds == (len(others) < len(entries(spec, place.field))):
            return spec
        return {**spec, place.field: [*others, entry] if place.adds else others}

    code = changed(chosen, make)
    done = "added to" if place.adds else "removed from"
    scope = "cluster" if is_cluster else "namespaced"
    talk(f"Group '{chosen.group}' and kind '{chosen.kind}' is {done} {place.said} {scope} resources")
    return code
