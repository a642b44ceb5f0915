"""Limits for rendering one chart. In: nothing. Out: constants. Never: unlimited."""

from __future__ import annotations

from typing import Final

from argosy.isolation.limit_and_confinement_types import ProgramLimits
from argosy.kube.objects import InputLimits

HELM_LIMITS: Final = ProgramLimits(wall=50.0, cpu=50.0, memory=1 << 30, output=64 << 20)
HELM_OUTPUT_LIMITS: Final = InputLimits(size=64 << 20, nodes=2_000_000)
