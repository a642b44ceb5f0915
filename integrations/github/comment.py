"""Writes one comment on a pull request. Each run updates it instead of adding another one.

In: a Markdown file whose first line is a marker; the job's environment variables of GitHub. Out: the comment. Never:
fails a job, because the job summary has the same text.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

SECONDS = 30.0
MOST_PAGES = 50


def main() -> int:
    body = Path(sys.argv[1]).read_text()
    number = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text()).get("pull_request", {}).get("number")
    if not number:
        print("::notice title=argosy::no pull request belongs to this job, so nothing is commented")
        return 0
    try:
        issues = f"/repos/{os.environ['GITHUB_REPOSITORY']}/issues"
        print(f"{_told(issues, int(number), body)} the comment")
    except urllib.error.HTTPError as error:
        # The token of a pull request from a fork is read-only.
        print(f"::notice title=argosy::the comment was not written: GitHub answered {error.code}; "
              "the summary of the job has it. The job needs `permissions: pull-requests: write`")  # fmt: skip
    except (urllib.error.URLError, TimeoutError) as error:
        print(f"::notice title=argosy::the comment was not written: GitHub could not be reached ({error})")
    return 0


def _told(issues: str, number: int, body: str) -> str:
    mark = body.partition("\n")[0]
    known = _known(f"{issues}/{number}/comments", mark)
    if known is None:
        _asked("POST", f"{issues}/{number}/comments", {"body": body})
        return "wrote"
    _asked("PATCH", f"{issues}/comments/{known}", {"body": body})
    return "renewed"


def _known(comments: str, mark: str) -> int | None:
    """Find the comment of an earlier run. Comments that quote it do not begin with the marker."""
    for page in range(1, MOST_PAGES + 1):
        found = _asked("GET", f"{comments}?per_page=100&page={page}")
        for each in found:
            if str(each.get("body") or "").startswith(mark) and each.get("user", {}).get("type") == "Bot":
                return int(each["id"])
        if len(found) < 100:
            return None
    return None


def _asked(verb: str, path: str, document: Any = None) -> Any:
    request = urllib.request.Request(  # noqa: S310 - the address is the runner's own
        os.environ["GITHUB_API_URL"] + path,
        data=None if document is None else json.dumps(document).encode(),
        method=verb,
        headers={
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {os.environ['INPUT_TOKEN']}",
            "Content-Type": "application/json",
            "User-Agent": "argosy",
        },
    )
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310
        return json.loads(answer.read())


if __name__ == "__main__":
    raise SystemExit(main())
