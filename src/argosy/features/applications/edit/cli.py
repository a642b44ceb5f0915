"""`argosy app create|set|unset`: write Applications from the same flags as argocd."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy.cli.command_parser import UsageError
from argosy.cli.subcommand_flags_and_runner import (
    SubParsersAction,
    add_app_subcommand,
    add_bool_flag,
    is_compat,
    print_message,
    run_with_service,
)
from argosy.gitops.workspace.helm_kustomize_render_flags import FLAGS

if TYPE_CHECKING:
    from argosy.gitops.application_client.application_service import ApplicationService


FLAGS_WITHOUT_EFFECT = frozenset({
    "--command", "--part", "--run", "--name", "--app-namespace", "--context", "--kubeconfig", "--data-dir", "--compat",
    "--validate", "--source-position",
})  # fmt: skip


def add_commands(parts: SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_app_subcommand(
        parts, "create", "create an Application", run_create, name_count="none",
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
    add_bool_flag(parser, "--validate", "refuse what its project does not permit (default: true)", default=True)
    add_spec_flags(parser)
    parser = add_app_subcommand(
        parts, "set", "change an Application", run_set,
        examples=("set models --revision v2", "set models --sync-policy automated --self-heal",
                  "set models --kustomize-image predictor=registry.example/predictor:2"),
    )  # fmt: skip
    _add_source_position(parser)
    add_bool_flag(parser, "--validate", "refuse what its project does not permit (default: true)", default=True)
    add_spec_flags(parser)
    parser = add_app_subcommand(
        parts, "unset", "remove options of an Application's source", run_unset,
        examples=("unset models --nameprefix", "unset models --parameter replicas --values values-dev.yaml"),
    )  # fmt: skip
    _add_source_position(parser)
    _add_unset_flags(parser)


def _add_source_position(parser: argparse.ArgumentParser) -> None:
    help_text = "position of the source; the first is 1"
    parser.add_argument("--source-position", type=int, metavar="N", help=help_text)


def add_spec_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    for flag, metavar, help_text in (
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
        add(flag, metavar=metavar, help=help_text)
    for flag, help_text in (
        ("--auto-prune", "automated: delete objects that are not in Git any more"),
        ("--self-heal", "automated: revert changes in the cluster"),
        ("--allow-empty", "automated: sync even if all objects would be deleted"),
        ("--sync-retry-refresh", "use the latest revision for retries"),
    ):
        add_bool_flag(parser, flag, help_text)
    help_text = "a sync option, such as CreateNamespace=true; a leading ! removes it; repeatable"
    add("--sync-option", action="append", metavar="OPTION", help=help_text)
    add("--sync-retry-limit", type=int, metavar="N", help="maximum number of retries (below zero: no limit)")
    add("--sync-retry-backoff-factor", type=int, metavar="N", help="factor by which each pause grows")
    add("--revision-history-limit", type=int, metavar="N", help="number of deployments kept in the history")
    for spec_flag in FLAGS:
        if not spec_flag.placeholder:
            add_bool_flag(parser, spec_flag.name, spec_flag.help_text)
        else:
            add(
                spec_flag.name,
                action="append" if spec_flag.is_repeated else "store",
                metavar=spec_flag.placeholder,
                help=spec_flag.help_text,
            )
    help_text = "Helm: a local file whose values are stored in the Application"
    add("--values-literal-file", metavar="FILE", help=help_text)
    help_text = "same as --helm-set; repeatable"
    add("-p", "--parameter", action="append", default=[], metavar="NAME=VALUE", help=help_text)


def _add_unset_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    for flag, metavar, help_text in (
        ("--parameter", "NAME", "a Helm value; repeatable"),
        ("--values", "FILE", "a file of Helm values; repeatable"),
        ("--kustomize-image", "NAME", "an image; repeatable"),
        ("--kustomize-replica", "NAME", "a replica count; repeatable"),
        ("--plugin-env", "NAME", "an environment variable of a plugin; repeatable"),
    ):
        add(flag, action="append", default=[], metavar=metavar, help=help_text)
    for flag, help_text in (
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
        add(flag, action="store_true", help=help_text)
    add("--source-name", metavar="NAME", help="name of the source")


def read_flags(args: argparse.Namespace) -> dict[str, Any]:
    flags = {f"--{name.replace('_', '-')}": value for name, value in vars(args).items()}
    extra = flags.pop("--parameter", None) or []
    if extra:
        flags["--helm-set"] = [*(flags.get("--helm-set") or []), *extra]
    if flags.get("--values-literal-file"):
        flags["--values-literal-file"] = Path(flags["--values-literal-file"]).read_text()
    return flags


def run_create(args: argparse.Namespace) -> int:
    async def work(service: ApplicationService) -> int:
        from argosy.errors import UserError
        from argosy.gitops.application_client.creation_and_update import create_application
        from argosy.gitops.application_client.project_validation_of_application import check_project_permits

        manifest = _build_manifest(args, service)
        name = manifest["metadata"].get("name")
        if not name:
            raise UserError("missing name of the Application; add it after create")
        if args.validate:
            await check_project_permits(service, manifest)
        outcome = await create_application(service, manifest, upsert=args.upsert)
        print(f"application '{name}' {outcome}")
        if outcome == "created":
            print_message(f"next: argosy app get {name}")
        return 0

    return run_with_service(args, work, show_target=True)


def _build_manifest(args: argparse.Namespace, service: ApplicationService) -> dict[str, Any]:
    from argosy.gitops.application_client.creation_and_update import load_content, read_application_file
    from argosy.gitops.application_client.spec_flags import IN_CLUSTER_SERVER, apply_flags, build_application

    name, flags = args.name or args.other_name, read_flags(args)
    if not args.file:
        if not flags.get("--dest-name") and not flags.get("--dest-server"):
            flags["--dest-server"] = IN_CLUSTER_SERVER  # the cluster of the controller
        return build_application(name, service.namespace, flags)
    content = load_content(args.file, lambda: sys.stdin.buffer.read() if sys.stdin else b"")
    manifest = apply_flags(read_application_file(args.file, content), flags)
    metadata = {**(manifest.get("metadata") or {}), **({"name": name} if name else {})}
    metadata.setdefault("namespace", service.namespace)
    return {**manifest, "metadata": metadata}


def run_set(args: argparse.Namespace) -> int:
    async def work(service: ApplicationService) -> int:
        from argosy.gitops.application_client.creation_and_update import change_application
        from argosy.gitops.application_client.project_validation_of_application import check_project_permits
        from argosy.gitops.application_client.spec_flags import apply_flags

        app, flags = await service.load_application(args.name), read_flags(args)
        if is_compat(args) and not has_flags(flags):
            print_message("argosy: please set at least one option to update\nnext: argosy app set --help")
            raise UsageError("no option")  # argo: a usage error
        if args.validate:
            await check_project_permits(service, apply_flags(app.wire, flags, args.source_position))
        has_changed = await change_application(
            service, app, lambda wire: apply_flags(wire, flags, args.source_position)
        )
        _print_outcome(args, app.name, has_changed)
        return 0

    return run_with_service(args, work, show_target=True)


def run_unset(args: argparse.Namespace) -> int:
    async def work(service: ApplicationService) -> int:
        from argosy.gitops.application_client.creation_and_update import change_application
        from argosy.gitops.application_client.spec_flags import unset_flags

        flags = {f"--{name.replace('_', '-')}": value for name, value in vars(args).items()}
        app = await service.load_application(args.name)
        has_changed = await change_application(
            service, app, lambda wire: unset_flags(wire, flags, args.source_position)
        )
        _print_outcome(args, app.name, has_changed)
        return 0

    return run_with_service(args, work, show_target=True)


def has_flags(flags: dict[str, Any]) -> bool:
    """True if a flag was given that changes an Application."""
    return any(value not in (None, False, [], "") for flag, value in flags.items() if flag not in FLAGS_WITHOUT_EFFECT)


def _print_outcome(args: argparse.Namespace, name: str, has_changed: bool) -> None:
    """argo: Prints nothing to stdout."""
    print_line = print_message if is_compat(args) else print
    print_line(f"application '{name}' {'updated' if has_changed else 'unchanged'}")
