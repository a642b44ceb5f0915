"""Replays recorded API requests against the sandbox: code, reason, message and shape equal a real API server's.

The recorded responses are next to the checkout, not in it; without them these tests are skipped.
"""

from __future__ import annotations

import ast
import difflib
import io
import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from support.clusters import argosy, sandbox
from support.deadlines import HANG_SECONDS

RECORDED = Path(__file__).parents[3] / "shared" / "data" / "kubeapi"
pytestmark = pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded answers of a real server are not here")

# Known differences of the embedded server, with the reason. A pattern that matches no difference fails the test.
EXCEPTIONS = {
    1: {},  # nothing
    2: {
        r"token: b'|meta: \{|page2: \{|inconsistent token|^ +200 \{": "where a page goes on is written without a slash",
        r"GET .*(continue|resourceVersion)=": "tokens and revisions differ from run to run",
        r"TRUNC $|history compacted|410|expired continue|too old|Expired|resourceVersionMatch=Exact": (
            "nothing was compacted here"
        ),
    },
    3: {
        r"'Update', 'status'": "a label that /status drops is not recorded as owned, there it is",
        r"GET status returns full object": "keys come in another order",
        r"generateName|^201 x+": "generated names are random",
    },
    4: {
        r"gone after|owner gone|background:|default SA after|Established after|served after": "other durations",
        r"Controller:\(\*bool\)": "the recorded message contains a memory address",
        r"nsd.*Terminating|NamespaceContentRemaining": "conditions are written at once, there after five seconds",
        r"ns gone": "other durations",
    },
    5: {
        r"after controller|kube-controller-manager|\"Update\", null|^rs:|^pod:|pod graceful|pods|RAISED|\"Pod\"": (
            "no workload controllers run in the embedded server itself"
        ),
        r"TokenReview|argosy-user-token|claims:": "the recorded server had a user of that token; tokens differ",
        r"patch: Invalid value": "the message quotes the whole object, whose key order differs",
        r"clusterIP": "another service network",
        r"columnDefinitions|Table": "column descriptions are in our own words",
        r"PartialObjectMetadataList|remainingItemCount|kube-root-ca.crt": "another number of ConfigMaps",
        r"protobuf: application": "other bytes of the same object",
        r"^/ |^/version|^/readyz\?verbose|^/api|^/apis|^/metrics|^/openapi|^/openid|^/\.well|^v2 pb": "other lengths",
        r"TRUNC": "a shorter excerpt of the same object",
    },
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("golden")
    with sandbox(folder / "data", "--port", "0") as started:
        load = ("sandbox", "load", "--data-dir", started.folder, "-f", RECORDED / "widgets-crd.yaml")
        assert argosy(*load, home=folder).code == 0
        tls = started.folder / "tls"
        yield {"BASE": started.address, "TOKEN": (tls / "admin.token").read_text(), "CA": str(tls / "ca.crt")}


@pytest.fixture(scope="module")
def replayed(server, request):
    """The chosen probes by number, run in ascending order: each continues from the state the previous one left."""
    chosen = {item.callspec.params["number"] for item in request.session.items if item.path == request.path}
    return {number: replay(RECORDED / f"probe{number}.py", server) for number in sorted(chosen)}


WAITING = [pytest.param(number, marks=pytest.mark.tier("all")) for number in (2, 4)]  # mostly waiting


@pytest.mark.parametrize("number", [1, 3, 5, *WAITING])
def test_responses_equal_the_recorded_ones_except_for_known_differences(number, replayed):
    expected = normal((RECORDED / f"probe{number}.txt").read_text())
    actual = normal(replayed[number])
    unused = dict(EXCEPTIONS[number])
    unexplained = []
    for line in differences(expected, actual):
        reasons = [pattern for pattern in EXCEPTIONS[number] if re.search(pattern, line[2:])]
        for pattern in reasons:
            unused.pop(pattern, None)
        if not reasons:
            unexplained.append(line[:600])
    assert not unexplained, "\n".join(unexplained)
    assert not unused, f"no longer needed: {list(unused)}"


def replay(script: Path, environment: dict[str, str]) -> str:
    """Run a script statement by statement, so that a failing statement does not hide the rest."""
    runner = textwrap.dedent("""
        import ast, sys
        space = {"__file__": sys.argv[1], "__name__": "probe"}
        for node in ast.parse(open(sys.argv[1]).read()).body:
            try:
                exec(compile(ast.Module([node], []), sys.argv[1], "exec"), space)
            except Exception as error:
                print("RAISED", type(error).__name__, error)
    """)
    command = [sys.executable, "-c", runner, script]
    every = {**os.environ, **environment}
    done = subprocess.run(command, env=every, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def differences(expected: list[str], actual: list[str]) -> list[str]:
    return [line for line in difflib.ndiff(expected, actual) if line[:2] in ("- ", "+ ")]


def normal(text: str) -> list[str]:
    """Lines without values that differ between runs, and objects with sorted keys."""
    for pattern, replacement in (
        (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID"),
        (r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        (r"""(["']resourceVersion["']): ?["']\d+["']""", r'\1: "N"'),
        (r"'content-length': '\d+'|'transfer-encoding': 'chunked'", "LENGTH"),
        (r"rv=\d+|'rv', '\d+'", "rv=N"),
        (r"current:? \d+", "current N"),
        (r"version: \d+", "version: N"),
        (r"in record \(\d+\)", "in record (N)"),
        (r"^( +)\(\d+\.\d+, ('[A-Z]+')", r"\1(T, \2"),
        (r"('[\w.-]+'|None), '\d+', ", r"\1, N, "),
        (r"\('end', \d+\.\d+\)|took [\d.]+", "DURATION"),
        (r'resourceVersion: "\d+"', "resourceVersion: N"),
        (r"dict_keys\(\[(.*?)\]\)", lambda match: "keys " + " ".join(sorted(match[1].split(", ")))),
        (r"\\u003c", "<"),
        (r"\\u003e", ">"),
    ):
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return [ordered(line.rstrip()) for line in text.splitlines()]


def ordered(line: str) -> str:
    """Sort the keys of every JSON object or Python literal in the line; replace a truncated object by its message."""
    out = io.StringIO()
    position = 0
    while position < len(line):
        if line[position] in "{[" and (literal := read_literal(line, position)):
            value, position = literal
            out.write(json.dumps(value, sort_keys=True, default=str))
            continue
        out.write(line[position])
        position += 1
    done = out.getvalue()
    if done.strip().startswith('{"'):
        try:
            json.loads(done)
        except ValueError:
            message = re.search(r'"message":"((?:[^"\\]|\\.)*)', done)
            return "    TRUNC " + (message.group(1)[:300] if message else "")
    return done


def read_literal(line: str, start: int):
    try:
        value, end = json.JSONDecoder().raw_decode(line, start)
        return value, end
    except ValueError:
        pass
    depth = 0
    for end in range(start, len(line)):
        depth += (line[end] in "{[") - (line[end] in "}]")
        if depth == 0:
            try:
                return ast.literal_eval(line[start : end + 1]), end + 1
            except (ValueError, SyntaxError):
                return None
    return None
