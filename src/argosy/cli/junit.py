"""Remarks for CI systems. In: remarks. Out: JUnit's XML. Never: a character that XML forbids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from argosy.cli.screen import plain

if TYPE_CHECKING:
    from argosy.app.health.linting import Remark


def junit(name: str, remarks: Sequence[Remark]) -> str:
    """One suite; an error is a failed case, a warning one that passed and says something."""
    errors = sum(remark.severity == "error" for remark in remarks)
    counts = f'tests="{len(remarks)}" failures="{errors}" errors="0" skipped="0"'
    head = f"<testsuite name={quoteattr(name)} {counts}>"
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *map(_case, remarks), "</testsuite>"])


def _case(remark: Remark) -> str:
    place = f"{remark.file}:{remark.line}"
    text = f"{remark.message}; {remark.advice}" if remark.advice else remark.message
    tag = f"<failure message={_attribute(text)}/>" if remark.severity == "error" else _output(text)
    return f"  <testcase classname={_attribute(remark.rule)} name={_attribute(place)}>{tag}</testcase>"


def _output(text: str) -> str:
    return f"<system-out>{escape(plain(text))}</system-out>"


def _attribute(text: str) -> str:
    return quoteattr(plain(text))
