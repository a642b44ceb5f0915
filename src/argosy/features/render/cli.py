"""`argosy render PATH…`: print the manifests of folders and Applications."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy.cli.error_messages import OutputClosed, print_error
from argosy.cli.exit_codes import EXIT_OK, get_exit_code
from argosy.gitops.workspace.helm_kustomize_render_flags import FLAGS

if TYPE_CHECKING:
    from argosy.gitops.workspace.render import RenderOutcome
    from argosy.gitops.workspace.render_target_resolver import WorkspaceRenderRequest

Commands = argparse._SubParsersAction  # the type argparse gives no public name

EXAMPLES = """\
Examples:
  argosy render overlays/dev
  argosy render overlays/*/ -o jsonl
  argosy render -f argocd-apps/dev-application.yaml
  argosy render overlays/dev --revision v1.2.0
  argosy render charts/model --values values-dev.yaml --helm-set replicas=2

See also: docs/guides/render.md
"""
OUTPUT_FORMATS = ("yaml", "json", "name", "jsonl")


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "render",
        help="print the manifests of folders and Applications",
        description="Renders manifests as Argo CD does: Kustomize, Helm, Jsonnet, plain files.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("paths", nargs="*", type=Path, metavar="PATH", help="folder; with --repo, a folder in that repository")
    help_text = "render the sources of the Applications in this file (- is standard input); repeatable"
    add("-f", "--filename", action="append", default=[], metavar="FILE", help=help_text)
    add("--revision", metavar="R", help="branch, tag or commit to use instead of the working tree")
    add("--repo", default="", metavar="URL", help="read PATH in this repository (default: the one that contains PATH)")
    help_text = "allow file:// URLs and paths of repositories below this folder; repeatable"
    add("--root", action="append", default=[], type=Path, metavar="DIR", help=help_text)
    help_text = "file with the ConfigMaps argocd-cm and argosy-cm; repeatable"
    add("--settings", action="append", default=[], type=Path, metavar="FILE", help=help_text)
    add("--name", default="", metavar="NAME", help="name of the Application (default: name of the folder)")
    add("--dest-namespace", default="", metavar="NAME", help="destination namespace")
    add(
        "-o",
        "--output",
        choices=OUTPUT_FORMATS,
        default="yaml",
        help="yaml (default), json, name, or jsonl (one line for each path)",
    )
    for flag in FLAGS:
        name = flag.name.lstrip("-").replace("-", "_")
        if not flag.placeholder:
            add(flag.name, dest=name, action="store_true", help=flag.help_text)
        else:
            action = "append" if flag.is_repeated else "store"
            add(flag.name, dest=name, action=action, metavar=flag.placeholder, help=flag.help_text)
    parser.set_defaults(run=run_render)


def run_render(args: argparse.Namespace) -> int:
    gc.set_threshold(200_000)  # imports alone would trigger a dozen useless collections
    from argosy.gitops.workspace.render import render_parts

    print_outcome = _OUTPUT_PRINTERS[args.output]
    codes: list[int] = []
    printed_outcomes: list[RenderOutcome] = []
    for outcome in render_parts(_build_request(args), _show_progress):
        if outcome.error is not None:
            codes.append(get_exit_code(outcome.error))
            if args.output != "jsonl":
                print_error(outcome.error, outcome.error_text)
        with _keep_exit_code(codes):
            print_outcome(outcome, printed_outcomes)
        if outcome.error is None:
            printed_outcomes = [*printed_outcomes, outcome] if args.output == "json" else [outcome]
    with _keep_exit_code(codes):
        if args.output == "json" and (printed_outcomes or not codes):
            _print_list(printed_outcomes)
    gc.freeze()  # avoids a last collection at exit
    return min(codes, default=EXIT_OK)


def _build_request(args: argparse.Namespace) -> WorkspaceRenderRequest:
    from argosy.gitops.workspace.render_target_resolver import WorkspaceRenderRequest

    return WorkspaceRenderRequest(
        paths=tuple(map(str, args.paths)),
        files=tuple(args.filename),
        repo=args.repo,
        revision=args.revision,
        roots=tuple(args.root),
        settings=tuple(args.settings),
        name=args.name,
        namespace=args.dest_namespace,
        options={flag.name: getattr(args, flag.name.lstrip("-").replace("-", "_")) for flag in FLAGS},
    )


def _show_progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@contextmanager
def _keep_exit_code(codes: list[int]) -> Iterator[None]:
    """Keep the exit code so far if the reader closes the pipe."""
    try:
        yield
    except BrokenPipeError:
        raise OutputClosed(min(codes, default=EXIT_OK)) from None


def _print_yaml(outcome: RenderOutcome, earlier: list[RenderOutcome]) -> None:
    from argosy.kube.objects import dump_yaml_documents

    if outcome.manifests:
        text = dump_yaml_documents(outcome.manifests)
        _write(f"---\n{text}" if any(item.manifests for item in earlier) else text)


def _print_names(outcome: RenderOutcome, earlier: list[RenderOutcome]) -> None:
    from argosy.kube.objects import key_of_desired

    keys = [key_of_desired(manifest) for manifest in outcome.manifests]
    _write("".join(f"{str(key.group_kind).lower()}/{key.name}\n" for key in keys))


def _print_json_line(outcome: RenderOutcome, earlier: list[RenderOutcome]) -> None:
    import orjson

    error = outcome.error
    error_fields: dict[str, Any] | None = None
    if error is not None:
        message, line = getattr(error, "message", str(error)), getattr(error, "line", 0)
        error_fields = {"file": getattr(error, "where", "") or None, "line": line or None, "message": message}
    line_fields = {
        "path": outcome.path,
        "ok": error is None,
        "error": error_fields,
        "ms": round(outcome.seconds * 1e3, 3),
    }
    if outcome.file:
        line_fields = {"path": outcome.path, "application": outcome.app or None, "file": outcome.file, **line_fields}
    _write(orjson.dumps({**line_fields, "manifests": outcome.manifests}).decode() + "\n")


def _print_nothing(outcome: RenderOutcome, earlier: list[RenderOutcome]) -> None:
    """Print nothing: a List is printed at the end."""


def _print_list(outcomes: list[RenderOutcome]) -> None:
    import orjson

    items = [manifest for outcome in outcomes for manifest in outcome.manifests]
    document = {"apiVersion": "v1", "kind": "List", "items": items}
    _write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")


def _write(text: str) -> None:
    if text:
        sys.stdout.write(text)
        sys.stdout.flush()


_OUTPUT_PRINTERS: dict[str, Callable[[RenderOutcome, list[RenderOutcome]], None]] = {
    "yaml": _print_yaml,
    "json": _print_nothing,
    "name": _print_names,
    "jsonl": _print_json_line,
}
