"""`argosy app get-resource|patch-resource|delete-resource`: single objects of an Application."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from argosy.cli.verbs import Commands, asked, at_desk, can_ask, form, is_compat, print_data, talk, verb
from argosy.errors import UserError

if TYPE_CHECKING:
    from argosy.gitops.application_client.client import Desk
    from argosy.gitops.application_client.resource_actions import Choice
    from argosy.kube.objects import Manifest

MERGE = "application/merge-patch+json"


def add_to(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = verb(
        parts, "get-resource", "show live objects of an Application", run_get_resource,
        forms=("wide", "json", "yaml"),
        examples=("get-resource models --kind Deployment",
                  "get-resource models --kind Pod --filter-fields status.podIP"),
    )  # fmt: skip
    _add_choice(parser, has_namespace=False)
    add = parser.add_argument
    add("--filter-fields", default="", metavar="PATHS", help="only these fields, such as status.podIP,status.phase")
    add("--show-managed-fields", action="store_true", help="also show managedFields")
    parser = verb(
        parts, "patch-resource", "patch an object of an Application", run_patch_resource,
        examples=("""patch-resource models --kind Deployment --resource-name web --patch '{"spec":{"replicas":2}}'""",
                  """patch-resource models --kind ConfigMap --all --patch '{"data":{"level":"debug"}}'"""),
    )  # fmt: skip
    _add_choice(parser)
    parser.add_argument("--all", action="store_true", help="patch all matching objects")
    parser.add_argument("--patch", required=True, metavar="JSON", help="the patch")
    about = f"media type of the patch (default: {MERGE})"
    parser.add_argument("--patch-type", default=MERGE, metavar="TYPE", help=about)
    parser = verb(
        parts, "delete-resource", "delete an object of an Application", run_delete_resource,
        examples=("delete-resource models --kind Job --resource-name train -y",
                  "delete-resource models --kind Pod --all"),
    )  # fmt: skip
    _add_choice(parser)
    add = parser.add_argument
    add("--all", action="store_true", help="delete all matching objects")
    add("--force", action="store_true", help="delete immediately, without grace period")
    add("--orphan", action="store_true", help="keep the children of the object")
    add("-y", "--yes", action="store_true", help="do not ask")


def _add_choice(parser: argparse.ArgumentParser, *, has_namespace: bool = True) -> None:
    add = parser.add_argument
    add("--kind", required=True, metavar="KIND", help="kind of the objects")
    add("--group", default="", metavar="GROUP", help="only objects of this API group")
    if has_namespace:
        add("--namespace", default="", metavar="NS", help="only objects in this namespace")
    add("--resource-name", default="", metavar="NAME", help="only the object with this name")
    add("--project", default="", metavar="NAME", help="fail if the Application is in another project")


def _choice(chosen: argparse.Namespace) -> Choice:
    from argosy.gitops.application_client.resource_actions import Choice

    return Choice(chosen.group, chosen.kind, getattr(chosen, "namespace", ""), chosen.resource_name)


def run_get_resource(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.gitops.application_client.objects import check_project, read_objects
        from argosy.gitops.application_client.reader import open_reader

        app = await desk.find(chosen.name)
        check_project(app, chosen.project)
        async with open_reader(desk, app=app) as reader:
            found = await read_objects(reader, app, _choice(chosen))
        _print_objects(chosen, [_shown(each, chosen) for each in found])
        names = ", ".join(each["metadata"]["name"] for each in found)
        talk(f"Resources '{names}' fetched" if found else f"no matching {chosen.kind}; see: argosy app tree {app.name}")
        return 0

    return at_desk(chosen, work)


def _shown(manifest: Manifest, chosen: argparse.Namespace) -> Manifest:
    from argosy.gitops.application_client.objects import picked

    metadata = {name: value for name, value in manifest["metadata"].items() if name != "managedFields"}
    whole = manifest if chosen.show_managed_fields else {**manifest, "metadata": metadata}
    if not chosen.filter_fields:
        return whole
    fields = picked(whole, chosen.filter_fields.split(","))
    return {**fields, "metadata": {**fields.get("metadata", {}), "name": metadata["name"]}}


def _print_objects(chosen: argparse.Namespace, found: list[Manifest]) -> None:
    from argosy.cli.tables import aligned
    from argosy.gitops.application_client.objects import flat

    how = form(chosen, "wide")
    if how != "wide":
        for place, manifest in enumerate(found):
            print("---\n" if place else "", end="")
            print_data(manifest, how)
        return
    rows = []
    for manifest in found:
        name = str(manifest["metadata"]["name"])
        for field, value in flat(manifest):
            if not (chosen.filter_fields and field == "metadata.name"):
                rows.append((field, value) if chosen.resource_name else (field, name, value))
    head = ("FIELD", "VALUE") if chosen.resource_name else ("FIELD", "RESOURCE NAME", "VALUE")
    print("\n".join(aligned([head, *rows])))


def run_patch_resource(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.gitops.application_client.objects import check_project, objects_to_change, patch_object
        from argosy.gitops.application_client.reader import open_reader

        app = await desk.find(chosen.name)
        check_project(app, chosen.project)
        async with open_reader(desk, app=app) as reader:
            for manifest in await objects_to_change(reader, app, _choice(chosen), on_all=chosen.all):
                await patch_object(reader, app, manifest, chosen.patch, chosen.patch_type)
                talk(f"Resource '{manifest['metadata']['name']}' patched")
        return 0

    return at_desk(chosen, work, writes=True)


def run_delete_resource(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.gitops.application_client.objects import check_project, delete_object, objects_to_change
        from argosy.gitops.application_client.reader import open_reader

        app = await desk.find(chosen.name)
        check_project(app, chosen.project)
        async with open_reader(desk, app=app) as reader:
            for manifest in await objects_to_change(reader, app, _choice(chosen), on_all=chosen.all):
                name = manifest["metadata"]["name"]
                if not _may_delete(f"{manifest['kind']}/{name}", chosen):
                    talk(f"The command to delete {manifest['kind']}/{name} was cancelled")
                    continue
                await delete_object(reader, app, manifest, orphan=chosen.orphan, force=chosen.force)
                talk(f"Resource '{name}' deleted")
        return 0

    return at_desk(chosen, work, writes=True)


def _may_delete(named: str, chosen: argparse.Namespace) -> bool:
    if chosen.yes or is_compat(chosen):  # argo: asks only if prompts are enabled
        return True
    if can_ask():
        return asked(f"Are you sure you want to delete {named}?")
    raise UserError(f"{named}: cannot ask for confirmation without a terminal; add -y")
