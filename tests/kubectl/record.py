"""Records the output of kubectl 1.32 against a real server: `python tests/kubectl/record.py [SCENARIO…]`.

In: the commands of `table/*.txt`. Out: the same files with exit codes and output recorded again; patterns are kept.
`--kubeconfig FILE` uses a running cluster; otherwise one is started from the cache of `tests/realcluster/build.sh`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support import control_plane, kubectl_transcripts


def record(kubeconfig: Path, names: list[str]) -> None:
    kubectl = kubectl_transcripts.oracle_kubectl()
    if kubectl is None:
        sys.exit("record: there is no kubectl 1.32 here: make install")
    with tempfile.TemporaryDirectory() as folder:
        shell = kubectl_transcripts.Shell(kubectl, kubeconfig, Path(folder))
        chosen = [scenario for scenario in kubectl_transcripts.scenarios() if not names or scenario.name in names]
        played = kubectl_transcripts.play(chosen, shell)
    for source in {scenario.source for scenario in chosen}:
        own = [scenario for scenario in chosen if scenario.source == source]
        outcomes = {
            row.line: outcome
            for own_scenario in own
            for row, outcome in zip(own_scenario.rows, played[own_scenario.name], strict=True)
        }
        source.write_text(kubectl_transcripts.recorded(source, outcomes))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("scenarios", nargs="*")
    parser.add_argument("--kubeconfig", type=Path)
    args = parser.parse_args()
    if args.kubeconfig:
        record(args.kubeconfig, args.scenarios)
    else:
        with control_plane.real_cluster_with(control_plane.CONTROLLERS_OF_THE_SANDBOX) as started:
            record(started.kubeconfig, args.scenarios)
