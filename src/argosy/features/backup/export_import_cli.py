"""`argosy admin export|import`: write and read an installation in Argo CD's export format."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from argosy.cli.cluster_flags import add_target_flags
from argosy.cli.exit_codes import EXIT_REFUSED
from argosy.cli.prompts import confirm_plan
from argosy.cli.subcommand_flags_and_runner import (
    SubParsersAction,
    add_subcommand,
    is_interactive,
    print_document,
    print_message,
    run_with_service,
)
from argosy.cli.tables import drop_control_characters
from argosy.errors import UserError
from argosy.kube.well_known_kinds import CLI_API_VERSION

if TYPE_CHECKING:
    from argosy.features.backup.import_plan import ImportChange
    from argosy.features.backup.installation_objects import BackupScope
    from argosy.gitops.application_client.application_service import ApplicationService

SEE_ALSO = "See also: docs/guides/moving.md, docs/reference/cli.md"
STDIO_PATH = "-"
SECRETS_WARNING = "the export contains Secrets in plain text (passwords, tokens, keys); protect the file"
NOT_EXPORTED_NOTE = "not exported: {names}; --all-settings includes them, for an import with argosy"
EXPORT_EXAMPLES = ("admin export > argosy.yaml", "admin export -o argosy.yaml --all-settings", "admin export --secrets")
IMPORT_EXAMPLES = (
    "admin import argosy.yaml --dry-run",
    "admin import argosy.yaml -y --hold",
    "admin import - -y < a.yaml",
)


def add_export_and_import(parts: SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_subcommand(
        parts, "export", "export an installation as a YAML stream", EXPORT_EXAMPLES, see_also=SEE_ALSO
    )
    _add_scope_flags(parser)
    help_text = "the file to write (default: -, standard output)"
    parser.add_argument("-o", "--out", default=STDIO_PATH, metavar="FILE", help=help_text)
    add_target_flags(parser)
    parser.set_defaults(run=run_export, app_namespace="")
    parser = add_subcommand(
        parts, "import", "import an exported installation into a cluster", IMPORT_EXAMPLES, see_also=SEE_ALSO
    )
    parser.add_argument("source", metavar="SOURCE", help="a file that argosy or argocd exported (- is standard input)")
    _add_scope_flags(parser)
    _add_import_flags(parser)
    add_target_flags(parser)
    parser.set_defaults(run=run_import, app_namespace="")


def _add_scope_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    about = "control namespace (default: where argosy or an ArgoCD resource is installed, else argocd)"
    add("-n", "--namespace", default="", metavar="NS", help=about)
    add("--secrets", action="store_true", help="include the Secrets of repositories, clusters and accounts")
    about = "include argocd-cmd-params-cm, argocd-gpg-keys-cm and argocd-notifications-cm, which argocd cannot import"
    add("--all-settings", action="store_true", help=about)
    about = "also Applications in namespaces that match these globs (default: all namespaces)"
    add("--application-namespaces", default="", metavar="NS,NS", help=about)


def _add_import_flags(parser: argparse.ArgumentParser) -> None:
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


def _build_scope(args: argparse.Namespace, app_service: ApplicationService) -> BackupScope:
    from argosy.features.backup.installation_objects import BackupScope

    return BackupScope(
        args.namespace or app_service.control_namespace,
        has_secrets=args.secrets,
        has_all_settings=args.all_settings,
        namespaces=_split_at_commas(args.application_namespaces),
    )


def _split_at_commas(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def run_export(args: argparse.Namespace) -> int:
    async def work(app_service: ApplicationService) -> int:
        from argosy.features.backup.export_format import manifest_to_export, render_stream
        from argosy.features.backup.installation_objects import list_installation_objects

        scope = _build_scope(args, app_service)
        live_objects = await list_installation_objects(app_service.cluster, replace(scope, has_all_settings=True))
        exported_manifests = [
            manifest_to_export(manifest, scope.control) for manifest in live_objects if scope.includes(manifest)
        ]
        if not exported_manifests:
            raise UserError(f"no installation found in {scope.control}; pass its namespace: -n NS")
        _write_output(args.out, render_stream(exported_manifests))
        counts = ", ".join(
            f"{sum(manifest['kind'] == kind for manifest in exported_manifests)} {kind}"
            for kind in _list_kinds(exported_manifests)
        )
        print_message(f"exported {counts} of {scope.control}")
        # Often they are empty. If not, the import lacks their content, such as GPG keys that projects require.
        if omitted_names := [
            manifest["metadata"]["name"]
            for manifest in live_objects
            if not scope.includes(manifest) and manifest.get("data")
        ]:
            print_message(f"argosy: {NOT_EXPORTED_NOTE.format(names=', '.join(omitted_names))}")
        if scope.has_secrets:
            print_message(f"argosy: {SECRETS_WARNING}")
        return 0

    return run_with_service(args, work)


def _list_kinds(manifests: Sequence[dict[str, object]]) -> list[str]:
    return list(dict.fromkeys(str(manifest["kind"]) for manifest in manifests))


def _write_output(path: str, text: str) -> None:
    """Write the export with mode 0600: even without Secrets it contains sensitive settings."""
    if path == STDIO_PATH:
        print(text, end="")
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.fchmod(descriptor, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)


def run_import(args: argparse.Namespace) -> int:
    content = sys.stdin.buffer.read() if args.source == STDIO_PATH else Path(args.source).read_bytes()

    async def work(app_service: ApplicationService) -> int:
        from argosy.features.backup.import_plan import ImportOptions
        from argosy.features.backup.import_service import plan_import, read_import_file
        from argosy.gitops.application_client.application_service import current_timestamp
        from argosy.gitops.status.sync_hold_annotation import SyncHold

        hold = SyncHold("imported", await app_service.find_user(), current_timestamp(), "") if args.hold else None
        options = ImportOptions(
            _build_scope(args, app_service),
            prunes=args.prune,
            terminates_operations=args.stop_operation,
            overwrites_decisions=args.decisions,
            hold=hold,
            skipped_labels=_split_at_commas(args.skip_resources_with_labels),
        )
        changes = await plan_import(app_service.cluster, read_import_file(content, args.source), options)
        return await _execute_plan(app_service, args, changes)

    return run_with_service(args, work, show_target=True)


async def _execute_plan(
    app_service: ApplicationService, args: argparse.Namespace, changes: Sequence[ImportChange]
) -> int:
    from argosy.features.backup.import_service import execute_changes

    is_json, refused_changes = args.output == "json", [change for change in changes if change.is_refused]
    if not is_json:
        print("\n".join(_render_plan(changes, is_verbose=args.verbose)))
    pending_changes = [] if refused_changes or args.dry_run else [change for change in changes if change.writes]
    if pending_changes:
        _confirm(args, len(pending_changes), changes)
        await execute_changes(
            app_service.cluster, pending_changes, lambda change: None if is_json else print(_format_done(change))
        )
    if is_json:
        header = {"apiVersion": CLI_API_VERSION, "kind": "ImportPlan", "done": bool(pending_changes)}
        print_document({**header, "items": [change.to_wire() for change in changes]}, "json")
    if refused_changes:
        return 1 if args.dry_run else EXIT_REFUSED
    return 0


def _confirm(args: argparse.Namespace, count: int, changes: Sequence[ImportChange]) -> None:
    if args.yes:
        return
    if args.source == STDIO_PATH or not is_interactive():
        raise UserError(f"cannot ask for confirmation to write {count} objects without a terminal; pass -y")
    lines, is_printed = _render_plan(changes, is_verbose=args.verbose), args.output != "json"
    confirm_plan(f"write {count} objects?", lines, is_printed=is_printed, refusal="nothing was written")


VERB_SIGNS = {"create": "+", "update": "~", "prune": "-", "needs pruning": "!", "skip": "=", "unchanged": "="}
PAST_TENSES = {"create": "created", "update": "updated", "prune": "pruned"}


def _render_plan(changes: Sequence[ImportChange], *, is_verbose: bool) -> list[str]:
    listed_changes = [change for change in changes if is_verbose or change.verb.value != "unchanged"]
    lines = [
        line
        for change in listed_changes
        for line in (
            _render_change(change),
            *(f"    {drop_control_characters(line_text)}" for line_text in change.differences),
        )
    ]
    counts = {
        verb: sum(change.verb.value == verb and not change.is_refused for change in changes) for verb in VERB_SIGNS
    }
    line_text = f"Plan: {counts['create']} to create, {counts['update']} to change, {counts['prune']} to prune"
    line_text += f", {counts['unchanged']} unchanged."
    if refused_count := sum(change.is_refused for change in changes):
        line_text += f" {refused_count} refused: nothing is written."
    return [*lines, *([""] if lines else []), line_text]


def _render_change(change: ImportChange) -> str:
    sign = "✗" if change.is_refused else VERB_SIGNS[change.verb.value]
    verb_suffix = "" if change.writes else f"  {change.verb.value}"
    reason_suffix = f": {change.reason}" if change.reason else ""
    return f"{sign} {_format_name(change)}{verb_suffix}{reason_suffix}"


def _format_name(change: ImportChange) -> str:
    namespace_suffix = f" in {change.key.namespace}" if change.key.namespace else ""
    return drop_control_characters(f"{change.key.kind} {change.key.name}{namespace_suffix}")


def _format_done(change: ImportChange) -> str:
    return f"{_format_name(change)} {PAST_TENSES[change.verb.value]}"
