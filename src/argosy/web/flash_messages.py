"""What a page says after a form was sent: sentences by code, so that an address can never put words on a page.

In: the value of `?said=`. Out: a sentence and its tone, or nothing. Never: text from an address.
"""

from __future__ import annotations

SAID: dict[str, tuple[str, str]] = {
    "acted": ("ok", "Done."),
    "approved": ("ok", "Approved."),
    "confirmed": ("ok", "Deletion confirmed: it goes on."),
    "connected": ("ok", "Added."),
    "deleted": ("ok", "Deletion has begun."),
    "dry-run": ("ok", "Dry run has begun: nothing is changed."),
    "env-held": ("ok", "Held: nothing is promoted to it until it is resumed."),
    "env-resumed": ("ok", "Resumed: promotions to it are possible again."),
    "held": ("ok", "Held: nothing is synced automatically until it is released."),
    "left": ("ok", "You are signed out."),
    "no-change": ("info", "Nothing to change: it is already so."),
    "prefers": ("ok", "Saved on this browser."),
    "promoted": ("ok", "Promoted: the commit is made."),
    "refreshed": ("ok", "Refresh asked for."),
    "refreshed-hard": ("ok", "Hard refresh asked for: the repository is read again."),
    "refreshed-many": ("ok", "Refresh asked for."),
    "rejected": ("ok", "Rejected."),
    "released": ("ok", "Released: automatic sync is on again."),
    "removed": ("ok", "Removed."),
    "restarted": ("ok", "Restart has begun: its Pods are being replaced."),
    "revoked": ("ok", "Revoked: that token is worth nothing any more."),
    "rollback": ("ok", "Rollback has begun; automatic sync is held until it is released."),
    "rolled-back": ("ok", "Rollback has begun."),
    "run-again": ("ok", "Asked for: it runs once more."),
    "saved": ("ok", "Saved."),
    "synced": ("ok", "Sync has begun."),
    "synced-many": ("ok", "Syncs have begun."),
    "terminated": ("ok", "Termination of the operation asked for."),
}


def sentence(code: object) -> tuple[str, str] | None:
    """Its tone and its words; nothing for a code that nobody wrote down."""
    return SAID.get(str(code or ""))
