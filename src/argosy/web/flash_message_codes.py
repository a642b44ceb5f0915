"""Messages that a page shows after a form was submitted, by code, so that a URL can never put text on a page.

In: the value of `?said=`. Out: a tone and a sentence, or None. Never: text from a URL.
"""

from __future__ import annotations

MESSAGES_BY_CODE: dict[str, tuple[str, str]] = {
    "acted": ("ok", "Done."),
    "approved": ("ok", "Approved."),
    "confirmed": ("ok", "Deletion confirmed; it continues."),
    "connected": ("ok", "Added."),
    "deleted": ("ok", "Deletion started."),
    "dry-run": ("ok", "Dry run started; nothing will be changed."),
    "env-held": ("ok", "Held: promotions to this environment are paused until it is resumed."),
    "env-resumed": ("ok", "Resumed: promotions to this environment are possible again."),
    "held": ("ok", "Held: automated sync is off until the hold is released."),
    "left": ("ok", "You are signed out."),
    "no-change": ("info", "No change needed."),
    "prefers": ("ok", "Saved in this browser."),
    "promoted": ("ok", "Promoted: the commit was created."),
    "refreshed": ("ok", "Refresh requested."),
    "refreshed-hard": ("ok", "Hard refresh requested; caches are bypassed."),
    "refreshed-many": ("ok", "Refresh requested."),
    "rejected": ("ok", "Rejected."),
    "released": ("ok", "Released: automated sync is on again."),
    "removed": ("ok", "Removed."),
    "restarted": ("ok", "Restart started; Pods are being replaced."),
    "revoked": ("ok", "Revoked: the token is no longer valid."),
    "rollback": ("ok", "Rollback started; automated sync is off until the hold is released."),
    "rolled-back": ("ok", "Rollback started."),
    "run-again": ("ok", "New run requested."),
    "saved": ("ok", "Saved."),
    "synced": ("ok", "Sync started."),
    "synced-many": ("ok", "Syncs started."),
    "terminated": ("ok", "Termination of the operation requested."),
}


def find_message(code: object) -> tuple[str, str] | None:
    """Return the tone and the sentence for a code; None for an unknown code."""
    return MESSAGES_BY_CODE.get(str(code or ""))
