"""Sanitizes program output for display. In: untrusted bytes or text. Out: plain lines. Never: control characters."""

from __future__ import annotations


def strip_control_characters(output: bytes | str) -> str:
    """Replace control characters except tabs and line ends with spaces."""
    text = output.decode("utf-8", "replace") if isinstance(output, bytes) else output
    return "".join(character if character.isprintable() or character in "\n\t" else " " for character in text).strip(
        "\n "
    )


def last_lines(output: bytes | str, count: int = 5, width: int = 500) -> str:
    """Return the last lines that are not blank, each cut to `width` characters."""
    lines = [line.rstrip() for line in strip_control_characters(output).splitlines() if line.strip()]
    return "\n".join(line if len(line) <= width else f"{line[:width]} …" for line in lines[-count:])
