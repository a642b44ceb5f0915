"""Only modules that need a date read the wall clock. Waits, timeouts and ages use a monotonic clock."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "argosy"
WALL_CLOCK = {
    ("time", "time"), ("time", "time_ns"), ("datetime", "now"), ("datetime", "utcnow"), ("datetime", "today"),
    ("date", "today"), ("time", "gmtime"), ("time", "localtime"), ("time", "ctime"), ("time", "strftime"),
}  # fmt: skip
TIME_IMPORT = re.compile(r"^\s*(from|import)\b.*\b(time|datetime|date)\b", re.MULTILINE)
# Module → why it reads the wall clock.
READERS = {
    "features/notebooks/runner/written_file_digests.py": "compared with the times of files",
    "features/notebooks/runner/results.py": "written down",
    "sandbox/simulators/model_server/server.py": "written down",
    "sandbox/simulators/model_server/inference_protocols.py": "written down",
    "sandbox/simulators/kserve/model_server_process.py": "written down",
    "sandbox/apiserver/metadata.py": "the clock that is passed in",
    "sandbox/apiserver/tls.py": "validity of certificates",
    "features/demo/content.py": "times of commits",
    "features/demo/stages_example_repository.py": "times of commits",
    "features/demo/failure_drills.py": "times of commits",
    "gitops/engine/metrics.py": "when the process began, as Prometheus wants it",
    "features/accounts/cli.py": "shown",
    "features/applications/sync/progress_output.py": "shown",
    "features/applications/read/text_output.py": "shown",
    "features/notebooks/files/run_and_validate_cli.py": "written down",
    "features/promote/text_output.py": "shown",
    "kube/client/auth.py": "the expiry that a credential plugin names",
    "isolation/scratch_folders.py": "compared with the times of files",
    "web/auth/login_codes.py": "the expiry inside a code",
    "gitops/application_client/application_actions.py": "written down",
    "gitops/application_client/application_service.py": "the clock that is passed in",
    "gitops/application_client/rate_limited_refresh_queue.py": "compared with an annotation",
    "features/doctor/fixes.py": "written down",
    "features/models/service.py": "written down",
    "features/notebooks/notebook_job_lookup_and_rerun.py": "written down",
    "features/notifications/service.py": "handed to templates",
    "features/promote/argosy_check_of_edited_repository.py": "compared with the times of files",
    "features/promote/plan.py": "compared with times of a cluster",
    "gitops/reconciler/render_cache.py": "shown",
    "kube/controller/clock.py": "the clock that is passed in",
    "web/middleware/audit.py": "written down",
    "web/page_templates.py": "shown",
    "gitops/source/charts/chart_cache.py": "compared with the times of files",
    "gitops/source/git/git_command_credentials.py": "compared with the times of files",
}


def reads_of_wall_clock(text: str) -> Iterator[int]:
    """Yield the line numbers of references to functions that read the wall clock."""
    tree = ast.parse(text)
    aliases = list_aliases(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
            owner = aliases.get(node.value.id, node.value.id) if isinstance(node.value, ast.Name) else node.value.attr
            if (owner, node.attr) in WALL_CLOCK:
                yield node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module == "time":
            yield from (node.lineno for alias in node.names if ("time", alias.name) in WALL_CLOCK)


def list_aliases(tree: ast.AST) -> dict[str, str]:
    """Map the import aliases of a file to the original names."""
    aliases = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            aliases |= {alias.asname: alias.name for alias in node.names if alias.asname}
    return aliases


def test_only_listed_modules_read_the_wall_clock() -> None:
    texts = {str(path.relative_to(SOURCE)): path.read_text() for path in SOURCE.rglob("*.py")}
    readers = {path for path, text in texts.items() if TIME_IMPORT.search(text) and any(reads_of_wall_clock(text))}
    assert readers - READERS.keys() == set(), "use time.monotonic(), asyncio.timeout() or a Clock; or say why not here"
    assert READERS.keys() - readers == set(), "these do not read it any more"


READS = [
    "until = time.time() + 5",
    "x = datetime.datetime.now(UTC)",
    "from time import time",
    "from time import time_ns",
    "n=datetime.utcnow",
    "import time as t; t.time()",
    "from datetime import datetime as dt; dt.now(UTC)",
    "year = time.localtime().tm_year",
    "stamp = time.strftime('%Y')",
]


@pytest.mark.parametrize("text", READS)
def test_wall_clock_read_is_found(text: str) -> None:
    assert list(reads_of_wall_clock(text)) == [1]
    assert list(reads_of_wall_clock("until = time.monotonic() + clock.now()")) == []
