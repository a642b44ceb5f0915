"""Detection of wait loops whose counter is never set, compared with what bash and sh do."""

from __future__ import annotations

import subprocess
import sys

import pytest

from argosy.gitops.analysis.unset_shell_loop_counters import MAX_SCRIPT_CHARACTERS, find_unset_counters
from support.deadlines import HANG_SECONDS

# A shortened wait loop of a Job: it prints a line on each iteration.
LOOP = """\
TIMEOUT=3
while [ $ELAPSED -lt $TIMEOUT ]; do
  echo waited
  ELAPSED=$((ELAPSED + 1))
done
exit 7
"""
TEST = "[ $ELAPSED -lt $TIMEOUT ]"
UNSET = {
    "the counter is only counted up": LOOP,
    "in quotes": LOOP.replace("$ELAPSED -lt", '"$ELAPSED" -lt'),
    "in braces": LOOP.replace("$ELAPSED -lt", "${ELAPSED} -lt"),
    "on the right": LOOP.replace(TEST, "[ $TIMEOUT -gt $ELAPSED ]"),
    "by the command test": LOOP.replace(TEST, "test $ELAPSED -lt $TIMEOUT"),
    "do on a line of its own": LOOP.replace("; do", "\ndo"),
    "set in a comment": "# ELAPSED=0\n" + LOOP,
    "set in a comment after quotes": "echo 'it # is' \"# not\" # ELAPSED=0\n" + LOOP,
    "a longer name is set": "MAX_ELAPSED=0\n" + LOOP,
    "a loop in the loop": LOOP.replace("  echo waited\n", "  for i in 1 2; do echo waited; done\n"),
    "counted by ((": LOOP.replace("ELAPSED=$((ELAPSED + 1))", "((ELAPSED++))"),
    "counted by let": LOOP.replace("ELAPSED=$((ELAPSED + 1))", "let ELAPSED=ELAPSED+1"),
    "all on one line": "T=3; while [ $E -lt $T ]; do echo waited; E=$((E+1)); done; exit 7",
    "set -u, and until": "set -eu\n" + LOOP.replace("while [ $ELAPSED -lt", "until [ $ELAPSED -ge"),
    "set -o nounset": "set -o nounset\n" + LOOP,
}
SET = {
    "set before": "ELAPSED=0\n" + LOOP,
    "a default in the test": LOOP.replace("$ELAPSED -lt", "${ELAPSED:-0} -lt"),
    "a default before": ": ${ELAPSED:=0}\n" + LOOP,
    "until counts an unset variable as 0": LOOP.replace("while [ $ELAPSED -lt", "until [ $ELAPSED -ge"),
    "so does a negated test": LOOP.replace("while [ $ELAPSED -lt", "while ! [ $ELAPSED -ge"),
    "so does [[": LOOP.replace(TEST, "[[ $ELAPSED -lt $TIMEOUT ]]"),
    "so does ((": LOOP.replace(TEST, "(( ELAPSED < TIMEOUT ))"),
    "another test may be true": LOOP.replace(" ]; do", ' ] || [ -z "$ELAPSED" ]; do'),
    "read from a text": "read -r ELAPSED <<< 0\n" + LOOP,
    "declared": "declare -i ELAPSED=0\n" + LOOP,
    "set before the function is called": f"wait() {{\n{LOOP.replace('exit 7', '')}}}\nELAPSED=0\nwait\nexit 7\n",
    "set after a number sign in quotes": 'echo "pod # 1"; ELAPSED=0\n' + LOOP,
    "set -u is taken back": "set -u; set +u\n" + LOOP.replace("while [ $ELAPSED -lt", "until [ $ELAPSED -ge"),
    "set -o nounset is taken back": "set -euo pipefail\nset +o nounset\n"
    + LOOP.replace("while [ $ELAPSED -lt", "until [ $ELAPSED -ge"),
    "set -u comes after": LOOP.replace("while [ $ELAPSED -lt", "until [ $ELAPSED -ge").replace("exit", "set -u; exit"),
    "counted by the shell": LOOP.replace("ELAPSED", "SECONDS").replace("SECONDS=$((SECONDS + 1))", "SECONDS=9"),
}


def waits(shell: str, script: str) -> bool:
    done = subprocess.run([shell, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode != 0  # each script exits with 7 or fails
    return "waited" in done.stdout


@pytest.mark.parametrize("script", UNSET.values(), ids=UNSET)
@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_loop_with_unset_counter_is_reported_and_does_not_wait(shell: str, script: str) -> None:
    assert [counter.name[0] for counter in find_unset_counters(f"/bin/{shell}\n-c\n{script}")] == ["E"]
    assert not waits(shell, script)


@pytest.mark.parametrize("script", SET.values(), ids=SET)
def test_loop_with_set_counter_is_not_reported_and_waits(script: str) -> None:
    assert list(find_unset_counters(f"/bin/bash\n-c\n{script}")) == []
    assert waits("bash", script)


def test_unset_counter_ends_script_under_shell_option_u() -> None:
    (counter,) = find_unset_counters(f"/bin/bash\n-euc\n{LOOP}")
    assert counter.ends_script
    done = subprocess.run(["bash", "-euc", LOOP], capture_output=True, text=True, check=False)
    assert "unbound variable" in done.stderr and "waited" not in done.stdout


def test_script_that_sources_another_script_is_not_reported() -> None:
    assert list(find_unset_counters(f". /scripts/defaults.sh\n{LOOP}")) == []
    assert list(find_unset_counters(f"source /scripts/defaults.sh\n{LOOP}")) == []


HOSTILE = ("while [ ", "while test ", "while [[ ] ", "while ((", "while [ $a -lt 1 ]\t", "while [ $i ] ; do ", "while",
           "while [ $i -lt 9 ]; do i=1; done ", "while [ $i -lt $j ]; do ((i ", "read x ", "((a ", "set -e ", "set -u",
           "# ", "'\"", "\\\"", "u", "sh\n-a\n", "source\n", "\n", "do ", "i[", "kubectl -n ")  # fmt: skip


def test_hostile_scripts_are_analyzed_without_quadratic_work() -> None:
    """Each script takes less than a second; quadratic work on one of them would take minutes."""
    code = (
        "import sys\n"
        "from argosy.gitops.analysis.kubectl_calls import list_kubectl_calls\n"
        "from argosy.gitops.analysis.unset_shell_loop_counters import *\n"
        "for script in sys.stdin.read().split('\\x1f'):\n"
        "    list(find_unset_counters(script)); list(list_kubectl_calls(script[:2000]))"
    )
    scripts = []
    for part in HOSTILE:
        for lead in ("", "set -u; while [ $i -lt 3 ]; do i=1 ", "sh\n-"):
            repeated = lead + part * (MAX_SCRIPT_CHARACTERS // len(part))
            scripts += [repeated[:MAX_SCRIPT_CHARACTERS], repeated * 20]
    command = [sys.executable, "-c", code]
    subprocess.run(command, input="\x1f".join(scripts), text=True, check=True, timeout=HANG_SECONDS)


def test_script_over_the_character_limit_is_not_analyzed() -> None:
    room = MAX_SCRIPT_CHARACTERS - len(LOOP)
    assert len(list(find_unset_counters("\n" * room + LOOP))) == 1
    assert list(find_unset_counters("\n" * (room + 1) + LOOP)) == []
