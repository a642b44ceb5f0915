"""`argosy app get-resource|patch-resource|delete-resource`: single objects of an Application."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from argosy.cli.subcommand_flags_and_runner import (
    SubParsersAction,
    add_app_subcommand,
    choose_output,
    confirm,
    is_compat,
    is_interactive,
    print_document,
    print_message,
    run_with_service,
)
from argosy.errors import UserError

if TYPE_CHECKING:
    from argosy.gitops.application_client.application_service import ApplicationService
    from argosy.gitops.application_client.resource_actions_and_logs import ObjectSelector
    from argosy.kube.objects import Manifest

MERGE_PATCH = "application/merge-patch+json"


def add_commands(parts: SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_app_subcommand(
        parts, "get-resource", "show live objects of an Application", run_get_resource,
        outputs=("wide", "json", "yaml"),
        examples=("get-resource models --kind Deployment",
                  "get-resource models --kind Pod --filter-fields status.podIP"),
    )  # fmt: skip
    _add_object_filters(parser, has_namespace=False)
    add = parser.add_argument
    add("--filter-fields", default="", metavar="PATHS", help="only these fields, such as status.podIP,status.phase")
    add("--show-managed-fields", action="store_true", help="also show managedFields")
    parser = add_app_subcommand(
        parts, "patch-resource", "patch an object of an Application", run_patch_resource,
        examples=("""patch-resource models --kind Deployment --resource-name web --patch '{"spec":{"replicas":2}}'""",
                  """patch-resource models --kind ConfigMap --all --patch '{"data":{"level":"debug"}}'"""),
    )  # fmt: skip
    _add_object_filters(parser)
    parser.add_argument("--all", action="store_true", help="patch all matching objects")
    parser.add_argument("--patch", required=True, metavar="JSON", help="the patch")
    help_text = f"media type of the patch (default: {MERGE_PATCH})"
    parser.add_argument("--patch-type", default=MERGE_PATCH, metavar="TYPE", help=help_text)
    parser = add_app_subcommand(
        parts, "delete-resource", "delete an object of an Application", run_delete_resource,
        examples=("delete-resource models --kind Job --resource-name train -y",
                  "delete-resource models --kind Pod --all"),
    )  # fmt: skip
    _add_object_filters(parser)
    add = parser.add_argument
    add("--all", action="store_true", help="delete all matching objects")
    add("--force", action="store_true", help="delete immediately, without grace period")
    add("--orphan", action="store_true", help="keep the children of the object")
    add("-y", "--yes", action="store_true", help="do not ask")


def _add_object_filters(parser: argparse.ArgumentParser, *, has_namespace: bool = True) -> None:
    add = parser.add_argument
    add("--kind", required=True, metavar="KIND", help="kind of the objects")
    add("--group", default="", metavar="GROUP", help="only objects of this API group")
    if has_namespace:
        add("--namespace", default="", metavar="NS", help="only objects in this namespace")
    add("--resource-name", default="", metavar="NAME", help="only the object with this name")
    add("--project", default="", metavar="NAME", help="fail if the Application is in another project")


def _read_object_selector(args: argparse.Namespace) -> ObjectSelector:
    from argosy.gitops.application_client.resource_actions_and_logs import ObjectSelector

    return ObjectSelector(args.group, args.kind, getattr(args, "namespace", ""), args.resource_name)


def run_get_resource(args: argparse.Namespace) -> int:
    async def work(service: ApplicationService) -> int:
        from argosy.gitops.application_client.app_state_reader import open_reader
        from argosy.gitops.application_client.object_operations import check_app_in_project, read_objects

        app = await service.load_application(args.name)
        check_app_in_project(app, args.project)
        async with open_reader(service, app=app) as reader:
            manifests = await read_objects(reader, app, _read_object_selector(args))
        _print_objects(args, [_select_fields(manifest, args) for manifest in manifests])
        names = ", ".join(manifest["metadata"]["name"] for manifest in manifests)
        print_message(
            f"Resources '{names}' fetched" if manifests else f"no matching {args.kind}; see: argosy app tree {app.name}"
        )
        return 0

    return run_with_service(args, work)


def _select_fields(manifest: Manifest, args: argparse.Namespace) -> Manifest:
    from argosy.gitops.application_client.object_operations import pick_fields

    metadata = {name: value for name, value in manifest["metadata"].items() if name != "managedFields"}
    shown_manifest = manifest if args.show_managed_fields else {**manifest, "metadata": metadata}
    if not args.filter_fields:
        return shown_manifest
    fields = pick_fields(shown_manifest, args.filter_fields.split(","))
    return {**fields, "metadata": {**fields.get("metadata", {}), "name": metadata["name"]}}


def _print_objects(args: argparse.Namespace, manifests: list[Manifest]) -> None:
    from argosy.cli.tables import format_aligned_columns
    from argosy.gitops.application_client.object_operations import flatten_fields

    output = choose_output(args, "wide")
    if output != "wide":
        for index, manifest in enumerate(manifests):
            print("---\n" if index else "", end="")
            print_document(manifest, output)
        return
    rows = []
    for manifest in manifests:
        name = str(manifest["metadata"]["name"])
        for field, value in flatten_fields(manifest):
            if not (args.filter_fields and field == "metadata.name"):
                rows.append((field, value) if args.resource_name else (field, name, value))
    columns = ("FIELD", "VALUE") if args.resource_name else ("FIELD", "RESOURCE NAME", "VALUE")
    print("\n".join(format_aligned_columns([columns, *rows])))


def run_patch_resource(args: argparse.Namespace) -> int:
    async def work(service: ApplicationService) -> int:
        from argosy.gitops.application_client.app_state_reader import open_reader
        from argosy.gitops.application_client.object_operations import (
            check_app_in_project,
            patch_object,
            select_objects_to_change,
        )

        app = await service.load_application(args.name)
        check_app_in_project(app, args.project)
        async with open_reader(service, app=app) as reader:
            for manifest in await select_objects_to_change(reader, app, _read_object_selector(args), on_all=args.all):
                await patch_object(reader, app, manifest, args.patch, args.patch_type)
                print_message(f"Resource '{manifest['metadata']['name']}' patched")
        return 0

    return run_with_service(args, work, show_target=True)


def run_delete_resource(args: argparse.Namespace) -> int:
    async def work(service: ApplicationService) -> int:
        from argosy.gitops.application_client.app_state_reader import open_reader
        from argosy.gitops.application_client.object_operations import (
            check_app_in_project,
            delete_object,
            select_objects_to_change,
        )

        app = await service.load_application(args.name)
        check_app_in_project(app, args.project)
        async with open_reader(service, app=app) as reader:
            for manifest in await select_objects_to_change(reader, app, _read_object_selector(args), on_all=args.all):
                name = manifest["metadata"]["name"]
                if not _confirm_delete(f"{manifest['kind']}/{name}", args):
                    print_message(f"The command to delete {manifest['kind']}/{name} was cancelled")
                    continue
                await delete_object(reader, app, manifest, orphan=args.orphan, force=args.force)
                print_message(f"Resource '{name}' deleted")
        return 0

    return run_with_service(args, work, show_target=True)


def _confirm_delete(object_name: str, args: argparse.Namespace) -> bool:
    if args.yes or is_compat(args):  # argo: asks only if prompts are enabled
        return True
    if is_interactive():
        return confirm(f"Are you sure you want to delete {object_name}?")
    raise UserError(f"{object_name}: cannot ask for confirmation without a terminal; add -y")
