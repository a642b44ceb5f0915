"""`argosy app diff|manifests|actions`: desired state, live state, and resource actions."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from argosy.cli.exit_codes import NO
from argosy.cli.tables import Screen, counted, fold
from argosy.cli.verbs import Commands, add_truth, at_desk, form, is_compat, print_data, talk, verb

if TYPE_CHECKING:
    from pathlib import Path

    from argosy.gitops.analysis.cause import Cause
    from argosy.gitops.application import Application
    from argosy.gitops.application.step_results import Difference
    from argosy.gitops.application_client.client import Desk
    from argosy.gitops.application_client.differences import Differing
    from argosy.gitops.application_client.reader import Reader
    from argosy.gitops.application_client.resource_actions import Choice
    from argosy.kube.objects import Manifest

LONGEST_VALUE = 60
EXTRA, NEW = "in the cluster, not in Git (to be pruned)", "in Git, not in the cluster (to be created)"


def add_to(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = verb(
        parts, "diff", "show differences between Git and the cluster; exits 1 if there are any", run_diff,
        forms=("table", "diff", "name", "json", "yaml"),
        examples=("diff models", "diff models --revision v2 -o diff", "diff models --local overlays/dev"),
    )  # fmt: skip
    _add_places(parser)
    parser.add_argument("--refresh", action="store_true", help="refresh the Application first")
    parser.add_argument(
        "--hard-refresh", action="store_true", help="refresh the Application first and render its manifests again"
    )
    add_truth(
        parser, "--exit-code", "return an exit code other than 0 if there are differences (default: true)", usual=True
    )
    parser.add_argument(
        "--diff-exit-code", type=int, default=NO, metavar="N", help="exit code if there are differences (default: 1)"
    )
    parser.add_argument(
        "--server-side-diff", action="store_true", help="compare with the result of a server-side apply dry run"
    )
    parser = verb(
        parts, "manifests", "print the desired or live manifests of an Application", run_manifests,
        forms=("yaml", "json", "name"),
        examples=("manifests models", "manifests models --source live", "manifests models --revision v2"),
    )  # fmt: skip
    _add_places(parser)
    parser.add_argument("--source", choices=("git", "live"), default="git", help="git (default), or live")
    _add_actions(parts)


def _add_places(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--revision", default="", metavar="R", help="a branch, tag or commit instead of the target revision")
    about = "revision of one of several sources, in the order of --source-positions; repeatable"
    add("--revisions", action="append", default=[], metavar="R", help=about)
    about = "position of a source; the first is 1; repeatable"
    add("--source-positions", action="append", type=int, default=[], metavar="N", help=about)
    about = "name of a source, instead of its position; repeatable"
    add("--source-names", action="append", default=[], metavar="NAME", help=about)
    add("--local", default="", metavar="DIR", help="a local folder instead of Git")
    add("--local-repo-root", default="", metavar="DIR", help="the root of the local repository that contains it")


def add_choice(parser: argparse.ArgumentParser, name_flag: str) -> None:
    add = parser.add_argument
    add("--group", default="", metavar="GROUP", help="only objects of this API group")
    add("--kind", default="", metavar="KIND", help="only objects of this kind")
    add("--namespace", default="", metavar="NS", help="only objects in this namespace")
    add(name_flag, dest="resource_name", default="", metavar="NAME", help="only the object with this name")


def _add_actions(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = parts.add_parser("actions", help="list and run resource actions")
    kinds = parser.add_subparsers(dest="what", metavar="COMMAND", required=True, parser_class=type(parser))
    parser = verb(
        kinds, "list", "list actions of the objects of an Application", run_actions_list,
        forms=("table", "wide", "json", "yaml"), examples=("actions list models", "actions list models --kind Job"),
    )  # fmt: skip
    add_choice(parser, "--resource-name")
    parser = verb(
        kinds, "run", "run an action on an object", run_action,
        examples=("actions run models restart --kind Deployment", "actions run models resume --kind CronJob --all"),
    )  # fmt: skip
    parser.add_argument("action", metavar="ACTION", help="name of the action, as shown by actions list")
    add_choice(parser, "--resource-name")
    parser.add_argument("--all", action="store_true", help="run it on all matching objects")


# -- diff ----------------------------------------------------------------------------------------------------------


def run_diff(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        app = await desk.find(chosen.name)
        if chosen.refresh or chosen.hard_refresh:
            from argosy.gitops.application_client.small_changes import (
                refresh,
            )  # imported here because it is rarely needed

            app = await refresh(desk, app, is_hard=chosen.hard_refresh, seconds=60.0, tell=talk)
        app, local = _placed(app, chosen)
        if chosen.server_side_diff:
            app = _asking_the_server(app)
        how = "normal" if is_compat(chosen) and not chosen.output else chosen.output or "table"
        differs = await print_diff(desk, app, refs=_refs(app, chosen), local=local, how=how)
        return int(chosen.diff_exit_code) if differs and chosen.exit_code else 0

    return at_desk(chosen, work)


async def print_diff(
    desk: Desk, app: Application, *, refs: Sequence[str] = (), local: Path | None = None, how: str = "table"
) -> bool:
    """Print the differences; return True if there are any."""
    from argosy.gitops.application_client.render_process import renderer

    crew = renderer()
    crew.begin()  # start it now: its imports take as long as the ones below
    from argosy.errors import RenderError, UnknownRef, UserError
    from argosy.gitops.application_client.difference_causes import explained, unrendered
    from argosy.gitops.application_client.differences import as_data, differing, with_causes, with_places
    from argosy.gitops.application_client.reader import open_reader

    async with open_reader(desk, local, crew=crew, app=app) as reader:
        try:
            look = await reader.look(app, refs, is_judged=False)
        except (RenderError, UnknownRef) as error:
            cause = await unrendered(reader, app, error, refs)
            raise UserError(f"{cause.text}; {cause.next}") if cause.kind == "StaleBranch" else error from error
        if not look.is_whole:
            said = next((each.message for each in look.conditions if each.type.is_error), "the comparison failed")
            raise UserError(f"{app.name}: {said}")
        found = differing(look.comparison, reader.rules.compare.masked_annotations)
        if how in ("table", "json", "yaml"):
            found = with_places(found, look.assembled.rendered)
            found = with_causes(found, await explained(reader, app, look, found, refs))
    if how in ("json", "yaml"):
        print_data(as_data(found), how)
    elif how == "name":
        print("".join(f"{str(each.key.group_kind).lower()}/{each.key.name}\n" for each in found), end="")
    else:
        print("".join(f"{line}\n" for each in found for line in _diff_lines(each, how)), end="")
        if how == "table":
            _tell_sum(app, found)
    return bool(found)


def _placed(app: Application, chosen: argparse.Namespace) -> tuple[Application, Path | None]:
    from argosy.gitops.application_client.reader import in_folder

    return in_folder(app, chosen.local, chosen.local_repo_root) if chosen.local else (app, None)


def _refs(app: Application, chosen: argparse.Namespace) -> tuple[str, ...]:
    from argosy.gitops.application_client.sync_requests import positioned

    if chosen.revisions:
        return positioned(app, chosen.revisions, chosen.source_positions, chosen.source_names)
    return (chosen.revision,) if chosen.revision else ()


def _asking_the_server(app: Application) -> Application:
    from dataclasses import replace

    from argosy.annotations import COMPARE_OPTIONS

    asked = ",".join(filter(None, (app.annotations.get(COMPARE_OPTIONS, ""), "ServerSideDiff=true")))
    return replace(app, annotations={**app.annotations, COMPARE_OPTIONS: asked})


def _diff_lines(found: Differing, how: str) -> list[str]:
    from argosy.gitops.application_client.differences import normal, unified

    key = found.key
    if how == "normal":  # argo: its heading and the output of the diff program
        return ["", f"===== {key.group}/{key.kind} {key.namespace}/{key.name} ======", *normal(found)]
    screen = Screen(sys.stdout)
    if how == "diff":
        return [screen.difference(line) for line in unified(found)]
    where = f" -n {key.namespace}" if key.namespace else ""
    return [f"{key.kind}/{key.name}{where}", *(f"  {line}" for line in _field_lines(found, screen))]


def _field_lines(found: Differing, screen: Screen) -> list[str]:
    whole = found.causes.get("")
    if not found.desired:
        told = whole.text if whole and whole.kind != "Prune" else EXTRA
        return [f"{screen.mark('OutOfSync')}  {told}{_source(whole)}"]
    if not found.live:
        told = whole.text if whole and whole.kind != "YourChange" else NEW
        return [f"{screen.mark('Missing')}  {told}{_source(whole)}"]
    rows = []
    for field in found.fields:
        cause = found.causes.get(field.pointer)
        told = f"{cause.kind.words}: {cause.text}{_source(cause)}" if cause else _author(field)
        rows.append((_path(field.pointer), _change(field), told))
    rows += [(_path(each.pointer), _value(each.live), f"no drift: set by {each.manager}") for each in found.added]
    width = max((len(row[0]) for row in rows), default=0)
    other = max((len(row[1]) for row in rows), default=0)
    lines = [f"{path:<{width}}  {change:<{other}}  {author}".rstrip() for path, change, author in rows]
    room = screen.width - 2 if screen.width is not None else None
    if room is None or max(map(len, lines), default=0) <= room:
        return lines
    pairs = [(fold(f"{path}  {change}", room), fold(f"    {author}", room, 6)) for path, change, author in rows]
    return [line for field, author in pairs for line in (*field, *author)]


def plan_lines(found: Sequence[Differing], *, prunes: bool) -> list[str]:
    """Render the changes of a sync object by object, without causes."""
    lines = []
    for each in found:
        key, rows = each.key, [(_path(field.pointer), _change(field)) for field in each.fields]
        width = max((len(row[0]) for row in rows), default=0)
        told = [f"{path:<{width}}  {change}" for path, change in rows]
        if not each.desired:
            told = [
                "will be deleted" if prunes else "stays, although that deployment did not have it (--prune deletes it)"
            ]
        elif not each.live:
            told = ["will be created"]
        lines += [f"{key.kind}/{key.name}{f' -n {key.namespace}' if key.namespace else ''}", *(f"  {t}" for t in told)]
    return lines


def _change(field: Difference) -> str:
    live = _value(field.live) if field.has_live else "-"
    return f"{live} → {_value(field.desired) if field.has_desired else '-'}"


def _path(pointer: str) -> str:
    from argosy.kube.patch.json_pointer import parse

    return ".".join(parse(pointer)) or "."


def _source(cause: Cause | None) -> str:
    """Return file and commit of the desired value."""
    if cause is None or not cause.place:
        return ""
    return f" ({cause.place}{f', {cause.commit}' if cause.commit else ''})"


def _author(field: Difference) -> str:
    if not field.manager:
        return ""
    return f"live value by {field.manager}{f' since {field.since}' if field.since else ''}"


def _value(value: Any) -> str:
    import orjson

    text = orjson.dumps(value).decode()
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def _tell_sum(app: Application, found: Sequence[Differing]) -> None:
    if not found:
        talk(f"{app.name}: no differences")
        return
    new, old = sum(not each.live for each in found), sum(not each.desired for each in found)
    changed = [each for each in found if each.live and each.desired]
    fields = sum(len(each.fields) for each in changed)
    counts = [f"{counted(fields, 'field')} of {counted(len(changed), 'object')} to change"] if changed else []
    counts += [f"{counted(new, 'object')} to create"] if new else []
    counts += [f"{counted(old, 'object')} to prune"] if old else []
    stuck = [each.key for each in found for cause in each.causes.values() if cause.kind.wants_more]
    if stuck:
        where = f" -n {stuck[0].namespace}" if stuck[0].namespace else ""
        counts.append(f"{len(stuck)} of which need{'s' if len(stuck) == 1 else ''} more than a sync")
        next_ = f"argosy explain {stuck[0].kind}/{stuck[0].name}{where}"
    else:
        next_ = f"argosy app sync {app.name}{' --prune' if old else ''}"
    talk(f"{app.name}: {', '.join(counts)}; next: {next_}")


# -- manifests -----------------------------------------------------------------------------------------------------


def run_manifests(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.gitops.application_client.reader import open_reader
        from argosy.gitops.diff import masked

        app, local = _placed(await desk.find(chosen.name), chosen)
        async with open_reader(desk, local, app=app) as reader:
            found = await _manifests(reader, app, chosen)
            shown = [each for each in masked(found, reader.rules.compare.masked_annotations) if each is not None]
        _print_manifests(shown, form(chosen, "yaml", "yaml"), "\n" if is_compat(chosen) else "")
        return 0

    return at_desk(chosen, work)


async def _manifests(reader: Reader, app: Application, chosen: argparse.Namespace) -> list[Manifest]:
    from argosy.gitops.application_client.resource_actions import Choice, chosen_objects

    if chosen.source == "live":
        return await chosen_objects(reader, app, Choice())
    return list((await reader.assemble(app, _refs(app, chosen))).desired)


def _print_manifests(found: Sequence[Manifest], how: str, end: str) -> None:
    """argo: An empty line follows each manifest."""
    from argosy.kube.objects import dump, key_of_source

    if how == "json":
        print_data({"apiVersion": "v1", "kind": "List", "items": list(found)}, how)
    elif how == "name":
        print("".join(f"{str(key.group_kind).lower()}/{key.name}\n" for key in map(key_of_source, found)), end="")
    else:
        print("".join(f"---\n{dump(each)}{end}" for each in found), end="")


# -- actions -------------------------------------------------------------------------------------------------------


def choice_of(chosen: argparse.Namespace) -> Choice:
    from argosy.gitops.application_client.resource_actions import Choice

    return Choice(chosen.group, chosen.kind, chosen.namespace, chosen.resource_name)


def run_actions_list(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.cli.tables import aligned
        from argosy.gitops.application_client.reader import open_reader
        from argosy.gitops.application_client.resource_actions import offers

        app = await desk.find(chosen.name)
        async with open_reader(desk, app=app) as reader:
            found = await offers(reader, app, choice_of(chosen))
        if chosen.output in ("json", "yaml"):
            data = [{**key._asdict(), "action": each.name, "disabled": each.disabled} for key, each in found]
            print_data({"items": data}, chosen.output)
            return 0
        rows = [(key.group, key.kind, key.name, each.name, str(each.disabled).lower()) for key, each in found]
        print("\n".join(aligned([("GROUP", "KIND", "NAME", "ACTION", "DISABLED"), *rows])))
        return 0

    return at_desk(chosen, work)


def run_action(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.gitops.application_client.reader import open_reader
        from argosy.gitops.application_client.resource_actions import act

        app = await desk.find(chosen.name)
        async with open_reader(desk, app=app) as reader:
            done = await act(reader, app, chosen.action, choice_of(chosen), on_all=chosen.all)
        say = talk if is_compat(chosen) else print  # argo: prints nothing
        for key in done:
            say(f"{key.kind}/{key.name}: {chosen.action} done")
        return 0

    return at_desk(chosen, work, writes=True)
