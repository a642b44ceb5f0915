"""Reports the progress of a run to a ConfigMap, if the Pod's ServiceAccount may write it.

In: text. Out: the new data of a ConfigMap. Never: fails or delays a run because it cannot write; retries after a
refusal.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final

SERVICE_ACCOUNT_FOLDER: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
REQUEST_TIMEOUT_SECONDS: Final = 10.0
MAX_REPORT_BYTES: Final = 400 << 10  # k8s: a ConfigMap can hold one megabyte in total
_FINAL_STATUS_CODES: Final = (401, 403, 404, 405)


class ProgressReporter:
    """Sends nothing if there is no ServiceAccount token or no ConfigMap name."""

    def __init__(self, name: str, account: Path = SERVICE_ACCOUNT_FOLDER) -> None:
        self._name, self._account = name, account
        self.is_open = bool(name) and (account / "token").is_file() and bool(os.environ.get("KUBERNETES_SERVICE_HOST"))

    def send(self, data: Mapping[str, str]) -> bool:
        """True if the ConfigMap was updated."""
        if not self.is_open:
            return False
        try:
            code = self._patch({key: text for key, text in data.items() if len(text.encode()) <= MAX_REPORT_BYTES})
        except (OSError, http.client.HTTPException, ValueError):
            return False
        self.is_open = code not in _FINAL_STATUS_CODES
        return code < 300

    def _patch(self, data: Mapping[str, str]) -> int:
        namespace = (self._account / "namespace").read_text().strip()
        token = (self._account / "token").read_text().strip()
        tls_context = ssl.create_default_context(cafile=str(self._account / "ca.crt"))
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], int(os.environ.get("KUBERNETES_SERVICE_PORT") or 443)
        connection = http.client.HTTPSConnection(host, port, context=tls_context, timeout=REQUEST_TIMEOUT_SECONDS)
        try:
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/merge-patch+json"}
            path = f"/api/v1/namespaces/{namespace}/configmaps/{self._name}?fieldManager=notebook-runner"
            connection.request("PATCH", path, json.dumps({"data": data}), headers)
            response = connection.getresponse()
            response.read()
            return response.status
        finally:
            connection.close()
