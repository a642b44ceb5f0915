"""Runs the shell blocks of a guide against a running demo, one after another, like a reader.

In: pages of llmops-via-argocd/ or docs/, a Demo. Out: the output of each block, and which of its commands failed.
Never: changes a block. Programs at the front of PATH replace the reader's manual actions: an editor, Ctrl-C, waiting.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from support.deadlines import HANG_SECONDS
from support.demo import Demo, own
from support.paths import ROOT

FOLDER = ROOT / "llmops-via-argocd"
FENCE = re.compile(r"^( *)```bash\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
GITHUB = ("https://github.com/your-org/llmops-demo.git", "https://github.com/ME/MINE.git")

# Watches until the expected text appears, then sends Ctrl-C. Restarts after a silence: for a single object, kubectl
# misses changes between its first get and its watch.
OC = """\
#!/bin/bash
PATH=${PATH#*:}
case " $* " in
  *" --watch "* | *" -w "* | *" logs "*" -f "*) ;;
  *) exec oc "$@" ;;
esac
look() {
  exec 4< <(exec oc "$@")
  while read -r -t 10 -u 4 line || return; do
    printf '%s\\n' "$line"
    [[ $line =~ $READER_SEES ]] && return
  done
}
while ((SECONDS < READER_WAITS)); do
  look "$@"
  (($? > 128)) || break
  kill -INT $!
done
kill -INT $!
"""
# Sleeps until the operator and the engine have done what the guides tell a reader to wait for.
SLEEP = """\
#!/bin/bash
PATH=${PATH#*:}
is_done() {
  kubectl get configmap argocd-cm -n openshift-gitops -o yaml | grep -q _InferenceService: &&
    ! kubectl get applications -n openshift-gitops -o yaml | grep -q argocd.argoproj.io/refresh:
}
while ((SECONDS < READER_WAITS)); do
  is_done && exit
  sleep 0.1
done
exit 1
"""
EDITOR = """\
#!/bin/bash
exec sed -i -E "$READER_EDITS" "${@: -1}"
"""
GIT = """\
[user]
  name = Ann Engineer
  email = ann@example.com
[init]
  defaultBranch = main
[url "file://{repository}"]
"""
# Actions of others, and checks of their effects; by kubectl, because it is the fastest client.
OTHERS = r"""
come_true() {
  local ends=$((SECONDS + READER_WAITS))
  until eval "$*" > /dev/null 2>&1; do
    ((SECONDS < ends)) || return 1
    /bin/sleep 0.1
  done
}
once() { [ -e "$HOME/once" ] || { "$@" > /dev/null && touch "$HOME/once"; }; }
is() {
  local words='{.status.sync.status} {.status.health.status}'
  [ "$(kubectl get application "$1" -n openshift-gitops -o jsonpath="$words")" = "$2 $3" ]
}
dev_has_cpus() {
  local cpu='{.spec.predictor.model.resources.limits.cpu}'
  [ "$(kubectl get inferenceservice dev-qwen25-05b-instruct -n llmops-dev -o jsonpath="$cpu")" = "$1" ]
}
merge() { git push -q origin HEAD:main; }
drift_in_staging() {
  kubectl patch inferenceservice staging-qwen25-05b-instruct -n llmops-staging --type merge \
    -p '{"spec":{"predictor":{"model":{"resources":{"limits":{"cpu":"10"}}}}}}'
}
fail_a_notebook() {
  kubectl get nvj model-validation -n ml-platform -o json |
    jq '.metadata = {name: "in-a-hurry", namespace: "ml-platform"}
      | del(.status, .spec.podConfig.volumes, .spec.podConfig.volumeMounts)' | kubectl apply -f -
  kubectl wait --for=condition=Failed nvj/in-a-hurry -n ml-platform --timeout="${READER_WAITS}s"
}
without_checks() {
  kubectl patch argocd openshift-gitops -n openshift-gitops --type json \
    -p '[{"op":"remove","path":"/spec/resourceHealthChecks"}]'
  come_true '! kubectl get configmap argocd-cm -n openshift-gitops -o yaml | grep serving.kserve.io'
  argosy health export --as cr | sed -n '/^spec:/,$p' | tail -n +2 > "$HOME/fragment"
}
"""
TYPED = """\
set -o pipefail
{exported}
cd "$READER_IS_IN"
trap 'pwd > "$READER_WAS_IN"' EXIT
trap 'echo "$?: $BASH_COMMAND" >> "$READER_FAILED"' ERR
{block}
"""


def blocks_of(page: str) -> list[str]:
    root = ROOT if page.startswith("docs/") else FOLDER
    return [block for _, block in FENCE.findall((root / page).read_text())]


class Typed(NamedTuple):
    """`failed` has a line for each failed command: its exit code and the command."""

    out: str
    failed: list[str]

    def checked(self, shows: Sequence[str], fails: Sequence[str]) -> None:
        """Check that these texts were printed in this order, and that exactly these commands failed."""
        unexpected = [line for line in self.failed if not any(line.startswith(prefix) for prefix in fails)]
        assert unexpected == [], self.out
        assert len(self.failed) == len(fails), self.out
        at = 0
        for pattern in shows:
            match = re.compile(pattern, re.MULTILINE).search(self.out, at)
            assert match, f"{pattern!r} is not in the rest of:\n{self.out}"
            at = match.start() + 1


class Reader:
    def __init__(self, shown: Demo) -> None:
        self.demo, self.home = shown, shown.home
        self.places: dict[str, Path] = {}
        self.words: Mapping[str, str] = {}  # words that this reader replaces
        self.first = shown.git("-C", shown.where["repository"], "rev-parse", "main").strip()
        commands = self.home / "hands"
        commands.mkdir()
        for name, text in (("oc", OC), ("sleep", SLEEP), ("vim", EDITOR)):
            (commands / name).write_text(text)
            (commands / name).chmod(0o755)
        instead = "".join(f"  insteadOf = {address}\n" for address in GITHUB)
        (self.home / ".gitconfig").write_text(GIT.format(repository=shown.where["repository"]) + instead)
        self.path = f"{commands}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        exports = [line for line in shown.printed.splitlines() if line.strip().startswith("export ")]
        assert len(exports) == 1
        self.exported = exports[0].strip()

    def begin(self, page: str) -> None:
        """Start in a clone of the demo's initial repository."""
        self.demo.git("-C", self.demo.where["repository"], "update-ref", "refs/heads/main", self.first)
        folder = self.home / page.replace("/", "-").removesuffix(".md")
        folder.mkdir()
        self.places[page] = folder
        if page != "QUICK-START.md":  # in that page the reader clones
            self.places[page] = folder / "clone"
            self.demo.git("clone", "-q", self.demo.where["repository"], str(folder / "clone"))

    def others(self, page: str, doing: str) -> Typed:
        return self.type(page, OTHERS + doing)

    def type(self, page: str, block: str, *, answers: str = "", edits: str = "", sees: str = "") -> Typed:
        was_in, failed = self.home / "was-in", self.home / "failed"
        failed.write_text("")
        environment = own(self.home) | {
            "PATH": self.path,
            "HOME": str(self.home),
            "EDITOR": str(self.home / "hands" / "vim"),
            "READER_IS_IN": str(self.places[page]),
            "READER_WAS_IN": str(was_in),
            "READER_FAILED": str(failed),
            "READER_EDITS": edits,
            "READER_SEES": sees,
            "READER_WAITS": f"{HANG_SECONDS - 10:.0f}",  # then the shell can report the reason before its timeout
        }
        done = subprocess.run(
            ["bash", "-c", TYPED.format(exported=self.exported, block=block)], input=answers, text=True,
            timeout=HANG_SECONDS,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, check=False,
        )  # fmt: skip
        self.places[page] = Path(was_in.read_text().strip())
        return Typed(done.stdout, failed.read_text().splitlines())
