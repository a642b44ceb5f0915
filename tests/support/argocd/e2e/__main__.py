"""Runs Argo CD's own end-to-end tests against Argo CD or against argosy, on a sandbox.

Usage: make argocd-e2e [RUN=REGEX] [ARGS="--against argocd|argosy --again"|--report]. A run that was ended goes on with
the tests that have no result yet.
Exit codes: 0 all that ran passed, 1 some failed, 2 bad input, 3 something is not built or installed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from support.argocd.e2e.goreman import provide_goreman
from support.argocd.e2e.installations import NAMESPACE, prepare_cluster, run_argocd_components, run_argosy_components
from support.argocd.e2e.report import PAGE, build_page, list_tests_by_file, read_reasons
from support.argocd.e2e.repository_hosts import find_missing_host, run_repository_hosts
from support.argocd.e2e.test_program import list_tests, run_tests
from support.argocd.e2e.test_record import TestResult, append_result, read_record
from support.argocd.programs import (
    TESTED_VERSION,
    VERSION,
    Installation,
    find_installation,
    find_missing_program,
)
from support.clusters import sandbox
from support.paths import VENV

RUNNERS: Final = {"argocd": run_argocd_components, "argosy": run_argosy_components}


@contextlib.contextmanager
def prepare_environment(installation: Installation, against: str, folder: Path) -> Iterator[dict[str, str]]:
    """Start everything that the tests need, and yield their environment."""
    data = folder / "data"
    (folder / "cluster").mkdir()
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(sandbox(folder / "cluster/data", "--port", "0", "--addons", "simulators"))
        prepare_cluster(server, installation, folder)
        components, port = stack.enter_context(RUNNERS[against](installation, server, folder / against, data))
        commands = stack.enter_context(provide_goreman(components, folder / "goreman"))
        hosts: dict[str, str] = {}
        if message := find_missing_host():
            print(f"without ssh, https, charts and registries: {message}", file=sys.stderr)
        else:
            hosts = stack.enter_context(run_repository_hosts(installation, data, folder / "hosts"))
        home = folder / "home"
        home.mkdir()
        (home / ".gitconfig").write_text(
            "[user]\n\tname = e2e\n\temail = e2e@argosy.dev\n[init]\n\tdefaultBranch = master\n"
        )
        _link_program(installation)
        programs = [commands, installation.folder, VENV / "helm", VENV / "bin"]
        yield {
            **hosts,
            "PATH": os.pathsep.join([*map(str, programs), os.environ["PATH"]]),
            "HOME": str(home),
            "KUBECONFIG": str(server.kubeconfig),
            "ARGOCD_SERVER": f"127.0.0.1:{port}",
            "ARGOCD_E2E_DIR": str(data),
            "ARGOCD_E2E_NAMESPACE": NAMESPACE,
            "ARGOCD_CONFIG_DIR": str(home / "argocd"),
            "ARGOCD_GPG_ENABLED": "true",
            "ARGOCD_APPLICATIONSET_CONTROLLER_ENABLE_PROGRESSIVE_SYNCS": "true",
            "NO_PROXY": "*",
        }


def _link_program(installation: Installation) -> None:
    """The tests start the CLI as ../../dist/argocd."""
    link = installation.source / "dist/argocd"
    link.parent.mkdir(exist_ok=True)
    if not link.exists():
        link.symlink_to(installation.folder / "argocd")


def choose_tests(names: list[str], pattern: str, recorded: Mapping[str, TestResult], again: bool) -> list[str]:
    """Return the tests whose name matches, without those that have a result already, unless they shall run again."""
    expression = re.compile(pattern)
    return [name for name in names if expression.search(name) and (again or name not in recorded)]


def _find_record(installation: Installation, against: str) -> Path:
    return installation.folder / f"e2e-{against}.jsonl"


def write_report() -> None:
    installation = find_installation()
    argocd, argosy = (read_record(_find_record(installation, name)) for name in ("argocd", "argosy"))
    PAGE.write_text(build_page(list_tests_by_file(installation), argocd, argosy, read_reasons()))
    print(f"{PAGE} is written")


def run_suite(against: str, pattern: str, again: bool) -> int:
    installation = find_installation()
    record = _find_record(installation, against)
    log = installation.folder / f"e2e-{against}.log"
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="argocd-e2e-", ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        print(f"starting a sandbox with {against}; log: {log}", file=sys.stderr)
        with prepare_environment(installation, against, folder) as environment:
            names = list_tests(installation, environment)
            chosen = choose_tests(names, pattern, read_record(record), again)
            print(f"running {len(chosen)} of {len(names)} tests", file=sys.stderr)
            for number, result in enumerate(run_tests(installation, chosen, environment, log), 1):
                append_result(record, result)
                counts[result.outcome] += 1
                print(f"{number}/{len(chosen)} {result.outcome} {result.name} {result.seconds:.1f} s", flush=True)
    print(", ".join(f"{counts[outcome]} {outcome}" for outcome in ("pass", "fail", "skip")))
    return 1 if counts["fail"] else 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Run Argo CD's end-to-end tests.")
    parser.add_argument("pattern", nargs="?", default="", help="regular expression for names of tests")
    parser.add_argument("--against", choices=sorted(RUNNERS), default="argosy", help="what is tested")
    parser.add_argument("--again", action="store_true", help="run tests that have a result, too")
    parser.add_argument("--report", action="store_true", help="run nothing; write the results to docs/reference")
    arguments = parser.parse_args()
    try:
        re.compile(arguments.pattern)
    except re.error as error:
        print(f"RUN={arguments.pattern}: {error}", file=sys.stderr)
        return 2
    if VERSION != TESTED_VERSION:
        print(
            f"only the end-to-end tests of Argo CD {TESTED_VERSION} are built; unset ARGOSY_ARGOCD_VERSION",
            file=sys.stderr,
        )
        return 2
    if message := find_missing_program(also=["e2e.test"]):
        print(message, file=sys.stderr)
        return 3
    if arguments.report:
        write_report()
        return 0
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end_run)
    return run_suite(arguments.against, arguments.pattern, arguments.again)


def _end_run(number: int, _: object) -> None:
    print("ended; the results so far are kept, and the next run goes on", file=sys.stderr)
    sys.exit(128 + number)


if __name__ == "__main__":
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    sys.exit(main())
