"""Sanitizes program output for display. In: untrusted bytes or text. Out: plain lines. Never: control characters."""

from __future__ import annotations


def cleaned(said: bytes | str) -> str:
    """Replace control characters except tabs and line ends with spaces."""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    return "".join(each if each.isprintable() or each in "\n\t" else " " for each in text).strip("\n ")


def last_lines(said: bytes | str, count: int = 5, width: int = 500) -> str:
    """Return the last lines that are not blank, each cut to `width` characters."""
    lines = [line.rstrip() for line in cleaned(said).splitlines() if line.strip()]
    return "\n".join(line if len(line) <= width else f"{line[:width]} …" for line in lines[-count:])
