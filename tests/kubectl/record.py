"""Writes what a real server makes kubectl 1.32 say into the table: `python tests/kubectl/record.py [SCENARIO…]`.

In: the commands of `table/*.txt`. Out: the same files with their exit codes and words told anew; patterns are kept.
`--kubeconfig FILE` takes a cluster that runs; else one is started from the cache of `tests/realcluster/build.sh`.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / name) for name in ("kubectl", "realcluster", "")]

import cluster  # noqa: E402
import transcript  # noqa: E402

# Those that the embedded server plays itself. Others would act on what the rows make by hand.
CONTROLLERS = ("garbage-collector-controller,namespace-controller,serviceaccount-controller,"
               "root-ca-certificate-publisher-controller,clusterrole-aggregation-controller")


@contextlib.contextmanager
def control_plane() -> Iterator[Path]:
    """A kubeconfig of a real server with the few controllers that the table counts on."""
    with cluster.real_cluster(with_controllers=False) as started:
        found = cluster.programs()
        assert found is not None
        arguments = [*cluster.controller_arguments(started.folder), f"--controllers={CONTROLLERS}"]
        started._run("kube-controller-manager", found["kube-controller-manager"], arguments)
        yield started.kubeconfig


def record(kubeconfig: Path, names: list[str]) -> None:
    kubectl = transcript.oracle_kubectl()
    if kubectl is None:
        sys.exit("record: there is no kubectl 1.32 here: make install")
    with tempfile.TemporaryDirectory() as folder:
        shell = transcript.Shell(kubectl, kubeconfig, Path(folder))
        chosen = [scenario for scenario in transcript.scenarios() if not names or scenario.name in names]
        played = transcript.play(chosen, shell)
    for source in {scenario.source for scenario in chosen}:
        own = [scenario for scenario in chosen if scenario.source == source]
        told = {row.line: outcome for each in own for row, outcome in zip(each.rows, played[each.name], strict=True)}
        source.write_text(transcript.recorded(source, told))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("scenarios", nargs="*")
    parser.add_argument("--kubeconfig", type=Path)
    given = parser.parse_args()
    with contextlib.nullcontext(given.kubeconfig) if given.kubeconfig else control_plane() as found:
        record(found, given.scenarios)
