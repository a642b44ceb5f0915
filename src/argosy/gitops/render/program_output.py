"""What a program said, fit to be shown. In: a stranger's bytes or text. Out: plain lines. Never: control characters."""

from __future__ import annotations


def cleaned(said: bytes | str) -> str:
    """Text without control characters but tabs and line ends."""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    return "".join(each if each.isprintable() or each in "\n\t" else " " for each in text).strip("\n ")


def last_lines(said: bytes | str, count: int = 5, width: int = 500) -> str:
    """The last lines that say something, none longer than `width`."""
    lines = [line.rstrip() for line in cleaned(said).splitlines() if line.strip()]
    return "\n".join(line if len(line) <= width else f"{line[:width]} …" for line in lines[-count:])
