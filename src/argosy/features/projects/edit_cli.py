"""`argosy proj create|set|edit|delete|add-…|remove-…|allow-…|deny-…`: change projects."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from argosy.cli.subcommand_flags_and_runner import (
    add_bool_flag,
    confirm,
    is_compat,
    is_interactive,
    print_message,
    run_with_service,
)
from argosy.errors import UserError
from argosy.features.projects.proj_subcommand_builder import PROJECT_ARGUMENT, Commands, add_command, update_spec

if TYPE_CHECKING:
    from argosy.gitops.application_client.application_service import ApplicationService

LIST_FLAGS = (
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
SERVER_ARGUMENT = ("SERVER", "address of the cluster; with --name, its name")
NAMESPACE_ARGUMENT = ("NAMESPACE", "namespace; may contain *")
# command → its arguments, spec field, noun for messages, fields of an entry (none: a string)
ENTRY_COMMANDS = (
    ("source", (("URL", "the repository"),), "sourceRepos", "source repository", ()),
    ("source-namespace", (NAMESPACE_ARGUMENT,), "sourceNamespaces", "source namespace", ()),
    ("signature-key", (("KEY-ID", "the key"),), "signatureKeys", "signature key", ("keyID",)),
    ("destination-service-account", (SERVER_ARGUMENT, NAMESPACE_ARGUMENT, ("ACCOUNT", "the service account")),
     "destinationServiceAccounts", "destination service account", ("server", "namespace", "defaultServiceAccount")),
)  # fmt: skip
GROUP_KIND_ARGUMENTS = (("GROUP", "API group; '' for the core group"), ("KIND", "the kind"))


def add_edit_commands(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = add_command(
        parts, "create", "create a project", run_create, arguments=(),
        examples=("create ml --src https://git.example/ml --dest https://kubernetes.default.svc,ml",
                  "create -f project.yaml --upsert"),
    )  # fmt: skip
    parser.add_argument(
        "project", nargs="?", default="", metavar="PROJECT", help="name of the project (default: from the file)"
    )
    about = "read the AppProject from this file (- is standard input)"
    parser.add_argument("-f", "--file", default="", metavar="FILE", help=about)
    parser.add_argument("--upsert", action="store_true", help="overwrite an existing project")
    _add_spec_flags(parser)
    parser = add_command(
        parts, "set", "change a project", run_set,
        examples=("set ml --description 'models'", "set ml --src https://git.example/ml --src https://git.example/lib"),
    )  # fmt: skip
    _add_spec_flags(parser)
    add_command(parts, "edit", "change a project's spec in an editor", run_edit, examples=("edit ml", "edit default"))
    parser = add_command(
        parts, "delete", "delete projects without Applications", run_delete, arguments=(),
        examples=("delete ml", "delete ml lib -y"),
    )  # fmt: skip
    parser.add_argument("projects", nargs="+", metavar="PROJECT", help="the projects")
    parser.add_argument("-y", "--yes", action="store_true", help="skip the confirmation prompt")
    _add_entry_commands(parts)
    _add_kind_commands(parts)


def _add_spec_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--description", metavar="TEXT", help="description of the project")
    for short, flag, metavar, help_text in LIST_FLAGS:
        names = [short, flag] if short else [flag]
        parser.add_argument(*names, action="append", default=[], metavar=metavar, help=help_text)
    parser.add_argument("--orphaned-resources", action="store_true", help="enable orphaned resource monitoring")
    add_bool_flag(parser, "--orphaned-resources-warn", "warn about orphaned resources")


def _add_entry_commands(parts: Commands[argparse.ArgumentParser]) -> None:
    for is_add, prefix, summary in ((True, "add", "allow a project"), (False, "remove", "no longer allow a project")):
        for noun, arguments, field, entry_noun, fields in ENTRY_COMMANDS:
            name = f"{prefix}-{noun}"
            run = partial(_change_entry, is_add, arguments, field, entry_noun, fields)
            example = " ".join(argument.lower() for argument, _ in arguments)
            add_command(parts, name, f"{summary} a {entry_noun}", run, arguments=(PROJECT_ARGUMENT, *arguments),
                 examples=(f"{name} ml {example}", f"{name} default {example}"))  # fmt: skip
        name = f"{prefix}-destination"
        parser = add_command(
            parts, name, f"{summary} a destination", partial(_change_destination, is_add),
            arguments=(PROJECT_ARGUMENT, SERVER_ARGUMENT, NAMESPACE_ARGUMENT),
            examples=(f"{name} ml https://kubernetes.default.svc ml", f"{name} ml in-cluster ml --name"),
        )  # fmt: skip
        parser.add_argument("--name", dest="is_name", action="store_true", help="SERVER is a cluster's name")
        name = f"{prefix}-orphaned-ignore"
        summary = f"{'ignore' if is_add else 'no longer ignore'} a kind in orphaned resource monitoring"
        parser = add_command(
            parts, name, summary, partial(_change_orphan_ignore_rule, is_add),
            arguments=(PROJECT_ARGUMENT, *GROUP_KIND_ARGUMENTS),
            examples=(f"{name} ml '' ConfigMap", f"{name} ml batch Job --name 'train-*'"),
        )  # fmt: skip
        parser.add_argument("--name", default="", metavar="NAME", help="only objects with this name; may contain *")


def _add_kind_commands(parts: Commands[argparse.ArgumentParser]) -> None:
    for is_allow, prefix in ((True, "allow"), (False, "deny")):
        for is_cluster, noun in ((True, "cluster"), (False, "namespace")):
            name = f"{prefix}-{noun}-resource"
            default_list = "allow" if is_cluster else "deny"
            parser = add_command(
                parts, name, f"{prefix} a {'cluster-scoped' if is_cluster else 'namespaced'} kind in a project",
                partial(_change_kind, is_allow, is_cluster), arguments=(PROJECT_ARGUMENT, *GROUP_KIND_ARGUMENTS),
                examples=(f"{name} ml '' {'Namespace' if is_cluster else 'Secret'}", f"{name} ml batch Job -l allow"),
            )  # fmt: skip
            if is_cluster:
                parser.add_argument("name", nargs="?", default="", metavar="NAME", help="only objects with this name")
            choices, help_text = ("allow", "deny", "white", "black"), f"change this list (default: {default_list})"
            parser.add_argument("-l", "--list", choices=choices, default=default_list, help=help_text)


def run_create(args: argparse.Namespace) -> int:
    async def work(app_service: ApplicationService) -> int:
        from argosy.gitops.application_client.appproject_operations import create_project

        manifest = _build_manifest(args, app_service)
        outcome = await create_project(app_service, manifest, upsert=args.upsert)
        print_message(f"project '{manifest['metadata']['name']}' {outcome}")
        return 0

    return run_with_service(args, work, show_target=True)


def _build_manifest(args: argparse.Namespace, app_service: ApplicationService) -> dict[str, Any]:
    from argosy.gitops.application_client.appproject_operations import build_project
    from argosy.gitops.application_client.creation_and_update import load_content
    from argosy.gitops.application_client.project_spec_edits import spec_from_flags
    from argosy.kube.objects import read_manifests

    spec, name, metadata = spec_from_flags(vars(args)), args.project, {}
    if args.file:
        content = load_content(args.file, lambda: sys.stdin.buffer.read() if sys.stdin else b"")
        projects = [
            manifest for manifest in read_manifests(content, where=args.file) if manifest.get("kind") == "AppProject"
        ]
        if len(projects) != 1:
            message = f"contains {len(projects)} AppProjects; pass a file with exactly one"
            raise UserError(message, where=args.file)
        metadata = projects[0]["metadata"]
        name, spec = name or metadata["name"], {**(projects[0].get("spec") or {}), **spec}
    if not name:
        raise UserError("the project has no name; pass it as an argument")
    new_manifest = build_project(name, app_service.namespace, spec)
    return {**new_manifest, "metadata": {**metadata, **new_manifest["metadata"]}}


def run_set(args: argparse.Namespace) -> int:
    from argosy.gitops.application_client.project_spec_edits import spec_from_flags

    changes = spec_from_flags(vars(args))
    if not changes:
        raise UserError("nothing to change; pass at least one option, such as --description TEXT")
    return update_spec(args, lambda spec: {**spec, **changes})


def run_edit(args: argparse.Namespace) -> int:
    async def work(app_service: ApplicationService) -> int:
        from argosy.cli.editor import EditorSession
        from argosy.gitops.application_client.appproject_operations import change_project, load_project

        current_spec = (await load_project(app_service, args.project)).get("spec") or {}
        with EditorSession(args.project, current_spec) as spec:
            if not isinstance(spec, dict):
                raise UserError(f"{args.project}: the edited text is not a map of fields; correct it")
            has_changed = await change_project(app_service, args.project, lambda _: spec)
        print_message(f"project '{args.project}' {'updated' if has_changed else 'unchanged'}")
        return 0

    return run_with_service(args, work, show_target=True)


def run_delete(args: argparse.Namespace) -> int:
    async def work(app_service: ApplicationService) -> int:
        from argosy.gitops.application_client.appproject_operations import delete_project

        for name in args.projects:
            if not args.yes and not is_compat(args):
                if not is_interactive():
                    raise UserError(f"{name}: cannot ask for confirmation without a terminal; pass -y")
                if not confirm(f"Are you sure you want to delete {name}?"):
                    print_message(f"The command to delete {name} was cancelled")
                    continue
            await delete_project(app_service, name)
            print_message(f"project '{name}' deleted")
        return 0

    return run_with_service(args, work, show_target=True)


def _change_entry(
    is_add: bool, arguments: Any, field: str, noun: str, fields: tuple[str, ...], args: argparse.Namespace
) -> int:
    from argosy.gitops.application_client.project_spec_edits import add_entry, remove_entry

    values = [getattr(args, argument.lower().replace("-", "_")) for argument, _ in arguments]
    entry = dict(zip(fields, values, strict=True)) if fields else values[0]
    return update_spec(args, lambda spec: (add_entry if is_add else remove_entry)(spec, field, entry, noun))


def _change_destination(is_add: bool, args: argparse.Namespace) -> int:
    from argosy.gitops.application_client.project_spec_edits import add_entry, build_destination, remove_entry

    entry = build_destination(args.server, args.namespace, is_name=args.is_name)
    return update_spec(
        args, lambda spec: (add_entry if is_add else remove_entry)(spec, "destinations", entry, "destination")
    )


def _change_orphan_ignore_rule(is_add: bool, args: argparse.Namespace) -> int:
    from argosy.gitops.application_client.project_spec_edits import change_orphan_ignore_list

    rule = {"group": args.group, "kind": args.kind, **({"name": args.name} if args.name else {})}
    return update_spec(args, lambda spec: change_orphan_ignore_list(spec, rule, adds=is_add))


def _change_kind(is_allow: bool, is_cluster: bool, args: argparse.Namespace) -> int:
    """argo: adding a listed kind, or removing an unlisted one, is not an error."""
    from argosy.gitops.application_client.project_spec_edits import choose_resource_list, list_entries

    list_change = choose_resource_list(allows=is_allow, is_cluster=is_cluster, list_type=args.list)
    name = getattr(args, "name", "")
    entry = {"group": args.group, "kind": args.kind, **({"name": name} if name else {})}

    def make(spec: dict[str, Any]) -> dict[str, Any]:
        other_entries = [item for item in list_entries(spec, list_change.field) if item != entry]
        if list_change.adds == (len(other_entries) < len(list_entries(spec, list_change.field))):
            return spec
        return {**spec, list_change.field: [*other_entries, entry] if list_change.adds else other_entries}

    code = update_spec(args, make)
    outcome = "added to" if list_change.adds else "removed from"
    scope = "cluster" if is_cluster else "namespaced"
    print_message(f"Group '{args.group}' and kind '{args.kind}' is {outcome} {list_change.effect} {scope} resources")
    return code
