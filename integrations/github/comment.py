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

TIMEOUT_SECONDS = 30.0
MAX_PAGES = 50


def main() -> int:
    body = Path(sys.argv[1]).read_text()
    number = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text()).get("pull_request", {}).get("number")
    if not number:
        print("::notice title=argosy::no pull request belongs to this job, so nothing is commented")
        return 0
    try:
        issues = f"/repos/{os.environ['GITHUB_REPOSITORY']}/issues"
        print(f"{_write_comment(issues, int(number), body)} the comment")
    except urllib.error.HTTPError as error:
        # The token of a pull request from a fork is read-only.
        print(f"::notice title=argosy::the comment was not written: GitHub answered {error.code}; "
              "the summary of the job has it. The job needs `permissions: pull-requests: write`")  # fmt: skip
    except (urllib.error.URLError, TimeoutError) as error:
        print(f"::notice title=argosy::the comment was not written: GitHub could not be reached ({error})")
    return 0


def _write_comment(issues: str, number: int, body: str) -> str:
    marker = body.partition("\n")[0]
    comment_id = _find_comment(f"{issues}/{number}/comments", marker)
    if comment_id is None:
        _request("POST", f"{issues}/{number}/comments", {"body": body})
        return "wrote"
    _request("PATCH", f"{issues}/comments/{comment_id}", {"body": body})
    return "updated"


def _find_comment(comments_path: str, marker: str) -> int | None:
    """Find the comment of an earlier run. Comments that quote it do not begin with the marker."""
    for page in range(1, MAX_PAGES + 1):
        page_comments = _request("GET", f"{comments_path}?per_page=100&page={page}")
        for comment in page_comments:
            if str(comment.get("body") or "").startswith(marker) and comment.get("user", {}).get("type") == "Bot":
                return int(comment["id"])
        if len(page_comments) < 100:
            return None
    return None


def _request(verb: str, path: str, document: Any = None) -> Any:
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
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310
        return json.loads(response.read())


if __name__ == "__main__":
    raise SystemExit(main())
