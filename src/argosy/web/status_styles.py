"""Colour and icon of each status. The status word is always shown next to them.

In: a category and a status word, as Argo CD writes it. Out: (tone, icon). Never: a status without an icon.
"""

from __future__ import annotations

from typing import Any

UNKNOWN_STYLE = ("unknown", "question")
STYLES: dict[str, dict[str, tuple[str, str]]] = {
    "health": {
        "Healthy": ("ok", "heart"),
        "Degraded": ("bad", "heart-broken"),
        "Progressing": ("busy", "progress"),
        "Suspended": ("paused", "pause"),
        "Missing": ("missing", "ghost"),
        "Unknown": UNKNOWN_STYLE,
    },
    "sync": {
        "Synced": ("ok", "check"),
        "OutOfSync": ("warn", "arrow-up"),
        "Unknown": UNKNOWN_STYLE,
    },
    "phase": {
        "Succeeded": ("ok", "check"),
        "Running": ("busy", "progress"),
        "Terminating": ("busy", "progress"),
        "Pending": ("paused", "clock"),
        "Waiting": ("paused", "clock"),
        "Failed": ("bad", "cross"),
        "Error": ("bad", "cross"),
        "Skipped": ("unknown", "minus"),
    },
    "resource": {
        "Synced": ("ok", "check"),
        "SyncFailed": ("bad", "cross"),
        "Pruned": ("warn", "trash"),
        "PruneSkipped": ("unknown", "minus"),
    },
    "severity": {
        "error": ("bad", "cross"),
        "warning": ("warn", "alert"),
        "info": ("busy", "info"),
        "ok": ("ok", "check"),
        "Warning": ("warn", "alert"),
        "Normal": ("unknown", "info"),
    },
    "cell": {
        "ok": ("ok", "✔"),
        "failed": ("bad", "✖"),
        "noted": ("warn", "▲"),
        "running": ("busy", "●"),
        "waiting": ("unknown", "◌"),
        "unknown": ("unknown", "◌"),
    },
}
WORST_FIRST = ("bad", "missing", "warn", "unknown", "busy", "paused", "ok")


def find_style(kind: str, word: Any) -> tuple[str, str]:
    """Return the tone and the icon of a status; unknown words look Unknown."""
    return STYLES[kind].get(str(word or "Unknown"), UNKNOWN_STYLE if kind != "cell" else ("unknown", "◌"))


def find_worst_tone(*tones: str) -> str:
    return min(tones, key=WORST_FIRST.index)


def get_page_state(health: Any, sync: Any = "", *, has_error: bool = False) -> str:
    """Return the state for the title and favicon of an application: "bad", "warn", "busy" or "ok"."""
    tone, _ = find_style("health", health)
    if has_error or tone in ("bad", "missing"):
        return "bad"
    if tone == "busy":
        return "busy"
    return "warn" if str(sync) in ("OutOfSync", "Unknown") else "ok" if tone == "ok" else ""
