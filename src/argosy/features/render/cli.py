"""`argosy render PATH…`: print the manifests of folders and Applications."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy.cli.error_messages import Unread, tell
from argosy.cli.exit_codes import DONE, code_of
from argosy.gitops.workspace.source_flags import FLAGS

if TYPE_CHECKING:
    from argosy.gitops.workspace.render import Outcome
    from argosy.gitops.workspace.render_request import Request

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
FORMS = ("yaml", "json", "name", "jsonl")


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "render",
        help="print the manifests of folders and Applications",
        description="Renders manifests as Argo CD does: Kustomize, Helm, Jsonnet, plain files.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("paths", nargs="*", type=Path, metavar="PATH", help="folder; with --repo, a folder in that repository")
    about = "render the sources of the Applications in this file (- is standard input); repeatable"
    add("-f", "--filename", action="append", default=[], metavar="FILE", help=about)
    add("--revision", metavar="R", help="branch, tag or commit to use instead of the working tree")
    add("--repo", default="", metavar="URL", help="read PATH in this repository (default: the one that contains PATH)")
    about = "allow file:// URLs and paths of repositories below this folder; repeatable"
    add("--root", action="append", default=[], type=Path, metavar="DIR", help=about)
    about = "file with the ConfigMaps argocd-cm and argosy-cm; repeatable"
    add("--settings", action="append", default=[], type=Path, metavar="FILE", help=about)
    add("--name", default="", metavar="NAME", help="name of the Application (default: name of the folder)")
    add("--dest-namespace", default="", metavar="NAME", help="destination namespace")
    add(
        "-o",
        "--output",
        choices=FORMS,
        default="yaml",
        help="yaml (default), json, name, or jsonl (one line for each path)",
    )
    for flag in FLAGS:
        name = flag.name.lstrip("-").replace("-", "_")
        if not flag.shown:
            add(flag.name, dest=name, action="store_true", help=flag.about)
        else:
            action = "append" if flag.is_repeated else "store"
            add(flag.name, dest=name, action=action, metavar=flag.shown, help=flag.about)
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    gc.set_threshold(200_000)  # imports alone would trigger a dozen useless collections
    from argosy.gitops.workspace.render import outcomes

    print_one = _PRINTERS[chosen.output]
    codes: list[int] = []
    shown: list[Outcome] = []
    for outcome in outcomes(_request(chosen), _talk):
        if outcome.error is not None:
            codes.append(code_of(outcome.error))
            if chosen.output != "jsonl":
                tell(outcome.error, outcome.said)
        with _kept(codes):
            print_one(outcome, shown)
        if outcome.error is None:
            shown = [*shown, outcome] if chosen.output == "json" else [outcome]
    with _kept(codes):
        if chosen.output == "json" and (shown or not codes):
            _print_list(shown)
    gc.freeze()  # avoids a last collection at exit
    return min(codes, default=DONE)


def _request(chosen: argparse.Namespace) -> Request:
    from argosy.gitops.workspace.render_request import Request

    return Request(
        paths=tuple(map(str, chosen.paths)),
        files=tuple(chosen.filename),
        repo=chosen.repo,
        revision=chosen.revision,
        roots=tuple(chosen.root),
        settings=tuple(chosen.settings),
        name=chosen.name,
        namespace=chosen.dest_namespace,
        options={flag.name: getattr(chosen, flag.name.lstrip("-").replace("-", "_")) for flag in FLAGS},
    )


def _talk(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@contextmanager
def _kept(codes: list[int]) -> Iterator[None]:
    """Keep the exit code so far if the reader closes the pipe."""
    try:
        yield
    except BrokenPipeError:
        raise Unread(min(codes, default=DONE)) from None


def _print_yaml(outcome: Outcome, before: list[Outcome]) -> None:
    from argosy.kube.objects import dump_all

    if outcome.manifests:
        text = dump_all(outcome.manifests)
        _write(f"---\n{text}" if any(each.manifests for each in before) else text)


def _print_names(outcome: Outcome, before: list[Outcome]) -> None:
    from argosy.kube.objects import key_of_source

    keys = [key_of_source(each) for each in outcome.manifests]
    _write("".join(f"{str(key.group_kind).lower()}/{key.name}\n" for key in keys))


def _print_line(outcome: Outcome, before: list[Outcome]) -> None:
    import orjson

    error = outcome.error
    told: dict[str, Any] | None = None
    if error is not None:
        message, line = getattr(error, "message", str(error)), getattr(error, "line", 0)
        told = {"file": getattr(error, "where", "") or None, "line": line or None, "message": message}
    answer = {"path": outcome.path, "ok": error is None, "error": told, "ms": round(outcome.seconds * 1e3, 3)}
    if outcome.file:
        answer = {"path": outcome.path, "application": outcome.app or None, "file": outcome.file, **answer}
    _write(orjson.dumps({**answer, "manifests": outcome.manifests}).decode() + "\n")


def _print_nothing(outcome: Outcome, before: list[Outcome]) -> None:
    """Print nothing: a List is printed at the end."""


def _print_list(shown: list[Outcome]) -> None:
    import orjson

    items = [manifest for each in shown for manifest in each.manifests]
    whole = {"apiVersion": "v1", "kind": "List", "items": items}
    _write(orjson.dumps(whole, option=orjson.OPT_INDENT_2).decode() + "\n")


def _write(text: str) -> None:
    if text:
        sys.stdout.write(text)
        sys.stdout.flush()


_PRINTERS: dict[str, Callable[[Outcome, list[Outcome]], None]] = {
    "yaml": _print_yaml,
    "json": _print_nothing,
    "name": _print_names,
    "jsonl": _print_line,
}
