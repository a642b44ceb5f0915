"""`argosy admin export|import`: write and read an installation in Argo CD's export format."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from argosy.cli.exit_codes import REFUSED
from argosy.cli.prompts import agree
from argosy.cli.tables import plain
from argosy.cli.target_flags import add_target_flags
from argosy.cli.verbs import Commands, at_desk, can_ask, described, print_data, talk
from argosy.errors import UserError

if TYPE_CHECKING:
    from argosy.features.backup.import_plan import Change
    from argosy.features.backup.installation_objects import Scope
    from argosy.gitops.application_client.client import Desk

SEE = "See also: docs/guides/moving.md, docs/reference/cli.md"
API = "cli.argosy.dev/v1"
STDIO = "-"
SECRETS_ARE_IN = "the export contains Secrets in plain text (passwords, tokens, keys); protect the file"
LEFT_OUT = "not exported: {names}; --all-settings includes them, for an import with argosy"
EXPORTS = ("admin export > argosy.yaml", "admin export -o argosy.yaml --all-settings", "admin export --secrets")
IMPORTS = ("admin import argosy.yaml --dry-run", "admin import argosy.yaml -y --hold", "admin import - -y < a.yaml")


def add_moving(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = described(parts, "export", "export an installation as a YAML stream", EXPORTS, see=SEE)
    _add_scope(parser)
    about = "the file to write (default: -, standard output)"
    parser.add_argument("-o", "--out", default=STDIO, metavar="FILE", help=about)
    add_target_flags(parser)
    parser.set_defaults(run=run_export, app_namespace="")
    parser = described(parts, "import", "import an exported installation into a cluster", IMPORTS, see=SEE)
    parser.add_argument("source", metavar="SOURCE", help="a file that argosy or argocd exported (- is standard input)")
    _add_scope(parser)
    _add_import(parser)
    add_target_flags(parser)
    parser.set_defaults(run=run_import, app_namespace="")


def _add_scope(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    about = "control namespace (default: where argosy or an ArgoCD resource is installed, else argocd)"
    add("-n", "--namespace", default="", metavar="NS", help=about)
    add("--secrets", action="store_true", help="include the Secrets of repositories, clusters and accounts")
    about = "include argocd-cmd-params-cm, argocd-gpg-keys-cm and argocd-notifications-cm, which argocd cannot import"
    add("--all-settings", action="store_true", help=about)
    about = "also Applications in namespaces that match these globs (default: all namespaces)"
    add("--application-namespaces", default="", metavar="NS,NS", help=about)


def _add_import(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--dry-run", action="store_true", help="print the plan without writing anything")
    add("-y", "--yes", action="store_true", help="skip the confirmation prompt")
    about = (
        "delete Applications, ApplicationSets and projects that are not in the file; their managed resources are kept"
    )
    add("--prune", action="store_true", help=about)
    about = "terminate running operations of imported Applications instead of refusing the import"
    add("--stop-operation", action="store_true", help=about)
    add("--hold", action="store_true", help="hold automated syncs of new Applications, until: argosy app release")
    about = "overwrite holds and the delivery engine with the values in the file, even if users changed them here"
    add("--decisions", action="store_true", help=about)
    about = "skip objects with one of these labels, in the cluster or in the file: NAME, or NAME=VALUE"
    add("--skip-resources-with-labels", "--skip-resources-with-label", default="", metavar="LABEL,LABEL", help=about)
    add("--verbose", action="store_true", help="also list unchanged objects")
    add("--output", choices=("text", "json"), default="text", help="text or json (default: text)")


def _scope(chosen: argparse.Namespace, desk: Desk) -> Scope:
    from argosy.features.backup.installation_objects import Scope

    return Scope(
        chosen.namespace or desk.control,
        has_secrets=chosen.secrets,
        has_all_settings=chosen.all_settings,
        namespaces=_words(chosen.application_namespaces),
    )


def _words(text: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in text.split(",") if each.strip())


def run_export(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.features.backup.file_format import exported, stream
        from argosy.features.backup.installation_objects import collected

        scope = _scope(chosen, desk)
        there = await collected(desk.cluster, replace(scope, has_all_settings=True))
        found = [exported(each, scope.control) for each in there if scope.has(each)]
        if not found:
            raise UserError(f"no installation found in {scope.control}; pass its namespace: -n NS")
        _write(chosen.out, stream(found))
        counts = ", ".join(f"{sum(each['kind'] == kind for each in found)} {kind}" for kind in _kinds(found))
        talk(f"exported {counts} of {scope.control}")
        # Often they are empty. If not, the import lacks their content, such as GPG keys that projects require.
        if left := [each["metadata"]["name"] for each in there if not scope.has(each) and each.get("data")]:
            talk(f"argosy: {LEFT_OUT.format(names=', '.join(left))}")
        if scope.has_secrets:
            talk(f"argosy: {SECRETS_ARE_IN}")
        return 0

    return at_desk(chosen, work)


def _kinds(found: Sequence[dict[str, object]]) -> list[str]:
    return list(dict.fromkeys(str(each["kind"]) for each in found))


def _write(out: str, text: str) -> None:
    """Write the export with mode 0600: even without Secrets it contains sensitive settings."""
    if out == STDIO:
        print(text, end="")
        return
    number = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.fchmod(number, 0o600)
    with os.fdopen(number, "w") as file:
        file.write(text)


def run_import(chosen: argparse.Namespace) -> int:
    content = sys.stdin.buffer.read() if chosen.source == STDIO else Path(chosen.source).read_bytes()

    async def work(desk: Desk) -> int:
        from argosy.features.backup.import_plan import Wish
        from argosy.features.backup.import_service import plan_import, read_stream
        from argosy.gitops.application_client.client import now
        from argosy.gitops.status.hold import Hold

        hold = Hold("imported", await desk.who(), now(), "") if chosen.hold else None
        wish = Wish(
            _scope(chosen, desk),
            prunes=chosen.prune,
            stops=chosen.stop_operation,
            decides=chosen.decisions,
            hold=hold,
            skipped_labels=_words(chosen.skip_resources_with_labels),
        )
        changes = await plan_import(desk.cluster, read_stream(content, chosen.source), wish)
        return await _carried_out(desk, chosen, changes)

    return at_desk(chosen, work, writes=True)


async def _carried_out(desk: Desk, chosen: argparse.Namespace, changes: Sequence[Change]) -> int:
    from argosy.features.backup.import_service import carry_out

    is_json, refused = chosen.output == "json", [each for each in changes if each.is_refused]
    if not is_json:
        print("\n".join(_lines(changes, is_verbose=chosen.verbose)))
    todo = [] if refused or chosen.dry_run else [each for each in changes if each.writes]
    if todo:
        _confirm(chosen, len(todo), changes)
        await carry_out(desk.cluster, todo, lambda each: None if is_json else print(_done(each)))
    if is_json:
        head = {"apiVersion": API, "kind": "ImportPlan", "done": bool(todo)}
        print_data({**head, "items": [each.document() for each in changes]}, "json")
    if refused:
        return 1 if chosen.dry_run else REFUSED
    return 0


def _confirm(chosen: argparse.Namespace, count: int, changes: Sequence[Change]) -> None:
    if chosen.yes:
        return
    if chosen.source == STDIO or not can_ask():
        raise UserError(f"cannot ask for confirmation to write {count} objects without a terminal; pass -y")
    lines, is_printed = _lines(changes, is_verbose=chosen.verbose), chosen.output != "json"
    agree(f"write {count} objects?", lines, is_printed=is_printed, refusal="nothing was written")


SIGNS = {"create": "+", "update": "~", "prune": "-", "needs pruning": "!", "skip": "=", "unchanged": "="}
PAST = {"create": "created", "update": "updated", "prune": "pruned"}


def _lines(changes: Sequence[Change], *, is_verbose: bool) -> list[str]:
    shown = [each for each in changes if is_verbose or each.verb.value != "unchanged"]
    lines = [line for each in shown for line in (_line(each), *(f"    {plain(told)}" for told in each.differences))]
    count = {verb: sum(each.verb.value == verb and not each.is_refused for each in changes) for verb in SIGNS}
    told = f"Plan: {count['create']} to create, {count['update']} to change, {count['prune']} to prune"
    told += f", {count['unchanged']} unchanged."
    if refused := sum(each.is_refused for each in changes):
        told += f" {refused} refused: nothing is written."
    return [*lines, *([""] if lines else []), told]


def _line(change: Change) -> str:
    sign = "✗" if change.is_refused else SIGNS[change.verb.value]
    word = "" if change.writes else f"  {change.verb.value}"
    why = f": {change.why}" if change.why else ""
    return f"{sign} {_name(change)}{word}{why}"


def _name(change: Change) -> str:
    place = f" in {change.key.namespace}" if change.key.namespace else ""
    return plain(f"{change.key.kind} {change.key.name}{place}")


def _done(change: Change) -> str:
    return f"{_name(change)} {PAST[change.verb.value]}"
