"""`argosy app patch|edit|add-source|remove-source`: change Applications by patch, editor or source."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from argosy.cli.editor import edited
from argosy.cli.verbs import Commands, add_truth, at_desk, is_compat, print_data, talk, verb
from argosy.features.applications.edit.cli import add_spec, given_flags

if TYPE_CHECKING:
    from argosy.gitops.application_client.client import Desk

Make = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def add_to(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = verb(
        parts, "patch", "patch an Application", run_patch,
        examples=("""patch models --type merge --patch '{"spec":{"source":{"targetRevision":"v2"}}}'""",
                  """patch models --patch '[{"op":"replace","path":"/spec/source/path","value":"dev"}]'"""),
    )  # fmt: skip
    parser.add_argument("--patch", required=True, metavar="JSON", help="the patch")
    about = "json (default: a list of operations), or merge"
    parser.add_argument("--type", choices=("json", "merge"), default="json", help=about)
    verb(
        parts, "edit", "edit the spec of an Application in an editor", run_edit,
        examples=("edit models", "edit ml/models"),
    )  # fmt: skip
    parser = verb(
        parts, "add-source", "add a source to an Application with several sources", run_add_source,
        examples=("add-source models --repo https://git.example/values --ref values", "add-source models --repo "
                  "https://git.example/ml --path overlays/dev --source-name dev"),
    )  # fmt: skip
    add_truth(parser, "--validate", "refuse what its project does not permit (default: true)", usual=True)
    add_spec(parser)
    parser = verb(
        parts, "remove-source", "remove a source from an Application with several sources", run_remove_source,
        examples=("remove-source models --source-position 2", "remove-source models --source-name dev"),
    )  # fmt: skip
    parser.add_argument("--source-position", type=int, metavar="N", help="position of the source; the first is 1")
    parser.add_argument("--source-name", default="", metavar="NAME", help="name of the source")


def run_patch(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.gitops.application_client.spec_patches import patched
        from argosy.gitops.application_client.writes import change

        app = await desk.find(chosen.name)
        await change(desk, app, lambda wire: patched(wire, chosen.patch, chosen.type))
        after = await desk.find(f"{app.namespace}/{app.name}")
        print_data(dict(after.wire), "yaml")
        if is_compat(chosen):
            print()  # argo: an empty line follows
        return 0

    return at_desk(chosen, work, writes=True)


def run_edit(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.gitops.application_client.spec_patches import with_spec
        from argosy.gitops.application_client.writes import change

        app = await desk.find(chosen.name)
        before = dict(app.wire).get("spec") or {}
        with edited(app.name, before) as spec:
            has_changed = spec != before and await change(desk, app, lambda wire: with_spec(wire, spec))
        talk(f"application '{app.name}' {'updated' if has_changed else 'unchanged'}")
        return 0

    return at_desk(chosen, work, writes=True)


def run_add_source(chosen: argparse.Namespace) -> int:
    from argosy.gitops.application_client.spec_patches import with_source

    given = given_flags(chosen)
    return _changed(chosen, lambda wire: with_source(wire, given))


def run_remove_source(chosen: argparse.Namespace) -> int:
    from argosy.gitops.application_client.spec_patches import without_source

    return _changed(chosen, lambda wire: without_source(wire, chosen.source_position, chosen.source_name))


def _changed(chosen: argparse.Namespace, make: Make) -> int:
    async def work(desk: Desk) -> int:
        from argosy.gitops.application_client.writes import change

        app = await desk.find(chosen.name)
        await change(desk, app, make)
        print(f"Application '{app.name}' updated successfully")
        return 0

    return at_desk(chosen, work, writes=True)
