"""Cached check results are not fresh when the clock was set back."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from argosy.features.promote.argosy_check_of_edited_repository import RESULT_LIFETIME_SECONDS, _is_fresh


@pytest.mark.parametrize(
    ("age", "is_fresh"), [(1.0, True), (RESULT_LIFETIME_SECONDS + 60, False), (-86400.0, False), (-3600.0, False)]
)
def test_cached_result_is_fresh_for_its_lifetime_and_never_from_the_future(
    tmp_path: Path, age: float, is_fresh: bool
) -> None:
    cached_answer = tmp_path / "kept"
    cached_answer.write_text("")
    written = time.time() - age
    os.utime(cached_answer, (written, written))
    assert _is_fresh(cached_answer) is is_fresh
