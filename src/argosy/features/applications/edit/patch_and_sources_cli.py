"""`argosy app patch|edit|add-source|remove-source`: change Applications by patch, editor or source."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from argosy.cli.editor import EditorSession
from argosy.cli.subcommand_flags_and_runner import (
    SubParsersAction,
    add_app_subcommand,
    add_bool_flag,
    is_compat,
    print_document,
    print_message,
    run_with_service,
)
from argosy.features.applications.edit.cli import add_spec_flags, read_flags

if TYPE_CHECKING:
    from argosy.gitops.application_client.application_service import ApplicationService

ChangeManifest = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def add_commands(parts: SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_app_subcommand(
        parts, "patch", "patch an Application", run_patch,
        examples=("""patch models --type merge --patch '{"spec":{"source":{"targetRevision":"v2"}}}'""",
                  """patch models --patch '[{"op":"replace","path":"/spec/source/path","value":"dev"}]'"""),
    )  # fmt: skip
    parser.add_argument("--patch", required=True, metavar="JSON", help="the patch")
    help_text = "json (default: a list of operations), or merge"
    parser.add_argument("--type", choices=("json", "merge"), default="json", help=help_text)
    add_app_subcommand(
        parts, "edit", "edit the spec of an Application in an editor", run_edit,
        examples=("edit models", "edit ml/models"),
    )  # fmt: skip
    parser = add_app_subcommand(
        parts, "add-source", "add a source to an Application with several sources", run_add_source,
        examples=("add-source models --repo https://git.example/values --ref values", "add-source models --repo "
                  "https://git.example/ml --path overlays/dev --source-name dev"),
    )  # fmt: skip
    add_bool_flag(parser, "--validate", "refuse what its project does not permit (default: true)", default=True)
    add_spec_flags(parser)
    parser = add_app_subcommand(
        parts, "remove-source", "remove a source from an Application with several sources", run_remove_source,
        examples=("remove-source models --source-position 2", "remove-source models --source-name dev"),
    )  # fmt: skip
    parser.add_argument("--source-position", type=int, metavar="N", help="position of the source; the first is 1")
    parser.add_argument("--source-name", default="", metavar="NAME", help="name of the source")


def run_patch(args: argparse.Namespace) -> int:
    async def work(service: ApplicationService) -> int:
        from argosy.gitops.application_client.application_patches_and_sources import apply_patch
        from argosy.gitops.application_client.creation_and_update import change_application

        app = await service.load_application(args.name)
        await change_application(service, app, lambda wire: apply_patch(wire, args.patch, args.type))
        updated = await service.load_application(f"{app.namespace}/{app.name}")
        print_document(dict(updated.wire), "yaml")
        if is_compat(args):
            print()  # argo: an empty line follows
        return 0

    return run_with_service(args, work, show_target=True)


def run_edit(args: argparse.Namespace) -> int:
    async def work(service: ApplicationService) -> int:
        from argosy.gitops.application_client.application_patches_and_sources import replace_spec
        from argosy.gitops.application_client.creation_and_update import change_application

        app = await service.load_application(args.name)
        original = dict(app.wire).get("spec") or {}
        with EditorSession(app.name, original) as spec:
            has_changed = spec != original and await change_application(
                service, app, lambda wire: replace_spec(wire, spec)
            )
        print_message(f"application '{app.name}' {'updated' if has_changed else 'unchanged'}")
        return 0

    return run_with_service(args, work, show_target=True)


def run_add_source(args: argparse.Namespace) -> int:
    from argosy.gitops.application_client.application_patches_and_sources import add_source

    flags = read_flags(args)
    return _change_application(args, lambda wire: add_source(wire, flags))


def run_remove_source(args: argparse.Namespace) -> int:
    from argosy.gitops.application_client.application_patches_and_sources import remove_source

    return _change_application(args, lambda wire: remove_source(wire, args.source_position, args.source_name))


def _change_application(args: argparse.Namespace, build_manifest: ChangeManifest) -> int:
    async def work(service: ApplicationService) -> int:
        from argosy.gitops.application_client.creation_and_update import change_application

        app = await service.load_application(args.name)
        await change_application(service, app, build_manifest)
        print(f"Application '{app.name}' updated successfully")
        return 0

    return run_with_service(args, work, show_target=True)
