"""Delivers Applications with the real Argo CD and with argosy, and prints what differs.

Usage: make compare-argocd [APPS="FILE|FOLDER…"] [ARGS=--keep]. Without APPS, both run until Ctrl-C.
Exit codes: 0 no difference, 1 differences, 2 bad input, 3 Argo CD is not built.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from argosy.annotations import SECRET_TYPE
from support.argocd.comparison import Difference
from support.argocd.known_differences import find_unexplained
from support.argocd.pair import CONTROL, Pair, run_pair
from support.argocd.programs import COMPONENTS, find_installation, find_missing_program

MAX_FILES: Final = 1000


class BadInputError(Exception):
    pass


def load_manifests(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """Return the objects of all YAML files. Those that Argo CD reads move to the control namespace of both sides."""
    manifests: list[dict[str, Any]] = []
    for file in _list_files(paths):
        try:
            documents = list(yaml.safe_load_all(file.read_text()))
        except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
            raise BadInputError(f"{file}: {error}") from None
        for document in documents:
            if not document:
                continue
            if not isinstance(document, dict) or not document.get("kind") or "metadata" not in document:
                raise BadInputError(f"{file}: a document is not a Kubernetes object; it needs kind and metadata")
            if _is_read_by_argocd(document):
                document["metadata"]["namespace"] = CONTROL
            manifests.append(document)
    if not any(manifest["kind"] == "Application" for manifest in manifests):
        raise BadInputError(f"no Application in {', '.join(map(str, paths))}")
    return manifests


def _is_read_by_argocd(manifest: dict[str, Any]) -> bool:
    """True for Applications, projects, and Secrets with repositories and clusters."""
    labels = manifest["metadata"].get("labels") or {}
    return str(manifest.get("apiVersion", "")).startswith("argoproj.io/") or SECRET_TYPE in labels


def _list_files(paths: Sequence[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        if not path.exists():
            raise BadInputError(f"{path} does not exist")
        files += sorted(path.rglob("*.y*ml")) if path.is_dir() else [path]
    if len(files) > MAX_FILES:
        raise BadInputError(f"{len(files)} files, more than {MAX_FILES}; name a smaller folder")
    return files


def compare_applications(pair: Pair, manifests: Sequence[dict[str, Any]]) -> dict[str, list[Difference]]:
    """Apply all objects on both sides, and return the differences of each Application."""
    names = [manifest["metadata"]["name"] for manifest in manifests if manifest["kind"] == "Application"]
    for is_application in (False, True):
        if chosen := [manifest for manifest in manifests if (manifest["kind"] == "Application") is is_application]:
            try:
                pair.apply(*chosen)
            except AssertionError as error:  # the message is kubectl's
                raise BadInputError(str(error)) from None
    for name in names:
        print(f"waiting for {name}", file=sys.stderr)
        pair.wait_until_settled(name)
    pair.wait_until_quiet(names)
    return {name: pair.compare_application(name) for name in names}


def print_comparison(pair: Pair, differences: dict[str, list[Difference]]) -> int:
    """Print one line for each Application and then its differences; return how many are not in the table."""
    on_argocd = pair.argocd.list_applications()
    width = max(map(len, differences))
    unexplained_count = 0
    for name, listed in differences.items():
        status = on_argocd.get(name, {}).get("status", {})
        unexplained = find_unexplained(name, listed)
        unexplained_count += len(unexplained)
        verdict = f"{len(unexplained)} differences" if unexplained else "same"
        if len(listed) > len(unexplained):
            verdict += f", and {len(listed) - len(unexplained)} known"
        sync, health = (status.get(field, {}).get("status", "-") for field in ("sync", "health"))
        print(f"{name:{width}}  {sync:9}  {health:11}  {verdict}")
        for difference in unexplained:
            print(f"  {difference}")
    return unexplained_count


@contextlib.contextmanager
def start_pair(folder: Path) -> Iterator[Pair]:
    print("starting two sandboxes, Argo CD on one and argosy on the other", file=sys.stderr)
    with run_pair(find_installation(), folder, (*COMPONENTS, "server")) as pair:
        yield pair


def print_addresses(pair: Pair) -> None:
    port = pair.programs.ports["server"]
    print(f"Argo CD: export KUBECONFIG={pair.argocd.server.kubeconfig}")
    print(f"         {pair.programs.installation.folder}/argocd --server 127.0.0.1:{port} --plaintext app list")
    print(f"argosy:  export KUBECONFIG={pair.argosy.server.kubeconfig}")
    print(f"logs:    {pair.folder}")
    print("Ctrl-C stops both and deletes them.", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="Deliver Applications with the real Argo CD and with argosy.")
    parser.add_argument("paths", nargs="*", type=Path, help="files or folders with Applications, applied to both")
    parser.add_argument("--keep", action="store_true", help="keep both running after the comparison, until Ctrl-C")
    arguments = parser.parse_args()
    if message := find_missing_program():
        print(message, file=sys.stderr)
        return 3
    try:
        manifests = load_manifests(arguments.paths) if arguments.paths else []
    except BadInputError as error:
        print(error, file=sys.stderr)
        return 2
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with tempfile.TemporaryDirectory(prefix="argocd-and-argosy-") as folder, start_pair(Path(folder)) as pair:
        try:
            count = print_comparison(pair, compare_applications(pair, manifests)) if manifests else 0
        except BadInputError as error:
            print(error, file=sys.stderr)
            return 2
        if arguments.keep or not manifests:
            print_addresses(pair)
            stopped.wait()
    return 1 if count else 0


if __name__ == "__main__":
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    sys.exit(main())
