"""Redaction: secret values found in any text and masked, whatever owns the Secrets and the texts."""

from __future__ import annotations

from typing import Final

MASK: Final = "++++++++"  # argo: stands for a secret value
