"""Downloads files of one Helm repository from its host.

In: a URL. Out: bytes, or a SourceError. Never: sends credentials to another host than the repository's, unless the
source passes them on; follows a redirect to a protocol that is not allowed, or from https to http.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from functools import partial
from typing import Final
from urllib.parse import urljoin, urlsplit

from argosy.errors import (
    AddressRefused,
    PolicyError,
    SourceError,
    SourceRefused,
    SourceTooLarge,
    SourceUnreachable,
    TransientError,
    UserError,
)
from argosy.gitops.application.repository_url_parser import DEFAULT_PORTS, RepositoryUrl, canonical_host
from argosy.gitops.source.charts.chart_index import MAX_INDEX_BYTES
from argosy.gitops.source.credentials import HostTrust, RepositoryCredential
from argosy.gitops.source.limits import SourceLimits
from argosy.http_client.file_download import (
    CertificateRejected,
    DownloadRequest,
    DownloadResponse,
    DownloadTooLarge,
    download,
)
from argosy.http_client.request_deadline import RequestDeadline
from argosy.http_client.request_threads import RequestThreads

MAX_REDIRECTS: Final = 5
_REDIRECT_CODES: Final = (301, 302, 303, 307, 308)
_Origin = tuple[str, str, int]  # scheme, host, port


@dataclass(frozen=True, slots=True)
class ChartHost:
    """Where a Helm repository is, and how to ask its host."""

    url: RepositoryUrl
    display_url: str  # for messages
    protocols: frozenset[str]
    threads: RequestThreads = field(repr=False)
    credential: RepositoryCredential | None = None
    trust: HostTrust = field(default_factory=HostTrust)
    limits: SourceLimits = field(default_factory=SourceLimits)

    async def fetch_index(self) -> bytes:
        return await self.fetch(f"{str(self.url).rstrip('/')}/index.yaml", MAX_INDEX_BYTES)

    async def fetch(self, url: str, max_bytes: int, *, passes_credentials: bool = False) -> bytes:
        """Download a file. One deadline holds for the wait for a thread, for the request and for its redirects."""
        deadline = RequestDeadline(self.limits.fetch_seconds)
        fetch = partial(self._fetch, url, max_bytes, deadline, passes_credentials=passes_credentials)
        try:
            return await self.threads.run(self.url.host, deadline, fetch)
        except TransientError as error:
            raise SourceUnreachable(str(error), where=self.display_url) from error

    def _fetch(self, url: str, max_bytes: int, deadline: RequestDeadline, *, passes_credentials: bool) -> bytes:
        previous_scheme = ""
        for _ in range(MAX_REDIRECTS + 1):
            origin = self._check_origin(url, previous_scheme)
            is_trusted = passes_credentials or origin == (self.url.scheme, self.url.host, self.url.port)
            response = self._send(self._build_request(url, origin[1], max_bytes, is_trusted=is_trusted), deadline)
            if response.code not in _REDIRECT_CODES or not response.location:
                return self._check_response(response, is_trusted=is_trusted)
            previous_scheme, url = origin[0], urljoin(url, response.location)
            passes_credentials = False  # the source trusts the hosts in the index, not those that a host names later
        raise SourceRefused(f"the host redirects more than {MAX_REDIRECTS} times", where=self.display_url)

    def _check_origin(self, url: str, previous_scheme: str) -> _Origin:
        """Return scheme, host and port of a URL that an index or a host names; it is checked like one of a user."""
        try:
            parts = urlsplit(url)
            scheme, host, port = parts.scheme.lower(), parts.hostname or "", parts.port
        except ValueError:
            scheme, host, port = "", "", None
        if scheme not in ("https", "http") or not host:
            raise AddressRefused("a chart's address is not an http or https URL", where=self.display_url)
        if scheme not in self.protocols or (previous_scheme == "https" and scheme == "http"):
            message = f"a chart is at an {scheme} address, which is not allowed; add {scheme} to source.protocols"
            if scheme in self.protocols:
                message = "the host redirects from https to http, which is not followed"
            raise AddressRefused(message, where=self.display_url)
        return scheme, canonical_host(f"[{host}]" if ":" in host else host), port or DEFAULT_PORTS[scheme]

    def _build_request(self, url: str, host: str, max_bytes: int, *, is_trusted: bool) -> DownloadRequest:
        credential = self.credential
        authorities = self.trust.authorities_by_host.get(host, "")
        if credential is None:
            return DownloadRequest(url, max_bytes, authorities=authorities)
        request = DownloadRequest(
            url,
            max_bytes,
            authorities=authorities,
            proxy=credential.proxy,
            no_proxy=credential.no_proxy,
            headers=_build_authorization(credential) if is_trusted else {},
            client_certificate=credential.client_certificate if is_trusted else "",
            client_key=credential.client_key if is_trusted else "",
            insecure=credential.skips_verification and is_trusted,
        )
        return request

    def _send(self, request: DownloadRequest, deadline: RequestDeadline) -> DownloadResponse:
        host = urlsplit(request.url).hostname
        try:
            return download(request, deadline)
        except DownloadTooLarge as error:
            raise SourceTooLarge(
                f"the file is larger than {request.max_bytes} bytes", where=self.display_url
            ) from error
        except CertificateRejected as error:
            message = (
                f"{error.message}; check the certificate of {host}, its authority in the ConfigMap "
                "argocd-tls-certs-cm, and tlsClientCertData and tlsClientCertKey in the repository's Secret"
            )
            raise SourceRefused(message, where=self.display_url) from error
        except TransientError as error:
            raise SourceUnreachable(f"the host does not answer ({error})", where=self.display_url) from error
        except PolicyError as error:
            raise AddressRefused(str(error), where=self.display_url) from error
        except UserError as error:
            raise SourceRefused(error.message, where=self.display_url) from error

    def _check_response(self, response: DownloadResponse, *, is_trusted: bool) -> bytes:
        code = response.code
        if code == 200:
            return response.body
        if code in (401, 403) and not is_trusted and self.credential is not None:
            raise SourceRefused(
                "the chart is on another host than its repository, and that host wants credentials; they are only sent "
                f"to it if source.helm.passCredentials is true (HTTP {code})",
                where=self.display_url,
            )
        if code in (401, 403, 407):
            message = "the host wants other credentials; check the Secret with the label argocd.argoproj.io/secret-type"
            raise SourceRefused(f"{message} for this address (HTTP {code})", where=self.display_url)
        if code in (404, 410):
            message = "not found, or the credentials may not read it; check the address and its Secret"
            raise SourceRefused(f"{message} (HTTP {code})", where=self.display_url)
        if code == 429 or code >= 500:
            raise SourceUnreachable(f"the host answers HTTP {code}; argosy will retry", where=self.display_url)
        raise SourceError(f"the host answers HTTP {code}; check the address", where=self.display_url)


def _build_authorization(credential: RepositoryCredential) -> dict[str, str]:
    """argo: only basic authentication, and no default user name."""
    if not credential.username and not credential.password:
        return {}
    pair = f"{credential.username}:{credential.password}".encode()
    return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
