"""JUnit report of lint remarks. In: a lint result. Out: JUnit XML. Never: emits a character that XML forbids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from argosy.cli.tables import plain

if TYPE_CHECKING:
    from argosy.features.health_checks.lint import Linted, Remark


def junit(name: str, found: Linted, *, strict: bool = False) -> str:
    """Render one test suite with a case for each script and each faulty setting."""
    cases = list(_cases(found))
    failed = sum(any(_fails(each, strict) for each in remarks) for _, _, remarks in cases)
    counts = f'tests="{len(cases)}" failures="{failed}" errors="0" skipped="0"'
    head = f"<testsuite name={quoteattr(name)} {counts}>"
    shown = [_case(file, place, remarks, strict) for file, place, remarks in cases]
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *shown, "</testsuite>"])


def _cases(found: Linted) -> Iterator[tuple[str, str, list[Remark]]]:
    for looked in found.looked:
        yield looked.file, looked.place, found.of(looked)
    for remark in found.of_settings():
        yield remark.file, remark.place, [remark]


def _fails(remark: Remark, strict: bool) -> bool:
    return strict or remark.severity == "error"


def _case(file: str, place: str, remarks: Sequence[Remark], strict: bool) -> str:
    head = f"  <testcase classname={_attribute(file)} name={_attribute(place or file)}"
    wrong = [_text(each) for each in remarks if _fails(each, strict)]
    beside = [_text(each) for each in remarks if not _fails(each, strict)]
    parts = [f"<failure message={_attribute('; '.join(wrong))}/>"] if wrong else []
    parts += [f"<system-out>{escape(plain('; '.join(beside)))}</system-out>"] if beside else []
    return f"{head}>{''.join(parts)}</testcase>" if parts else f"{head}/>"


def _text(remark: Remark) -> str:
    advice = f" ({remark.advice})" if remark.advice else ""
    return f"{remark.file}:{remark.line}: {remark.rule} {remark.message}{advice}"


def _attribute(text: str) -> str:
    return quoteattr(plain(text))
