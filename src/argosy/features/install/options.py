"""Options of an installation. In: flag values. Out: InstallOptions, or a UserError. Never: calls a cluster."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from argosy import __version__
from argosy.errors import UserError
from argosy.gitops.application.argosy_component_labels import DEFAULT_INSTALL_NAMESPACE

DEFAULT_IMAGE: Final = f"argosy:{__version__}"
_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
# k8s: a DNS subdomain, the format of Secret names.
_SUBDOMAIN: Final = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_IMAGE: Final = re.compile(r"[A-Za-z0-9][\w.:/@-]*")
_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")


@dataclass(frozen=True)
class InstallOptions:
    namespace: str = DEFAULT_INSTALL_NAMESPACE
    is_ha: bool = False
    is_read_only: bool = False
    image: str = DEFAULT_IMAGE
    hostnames: tuple[str, ...] = ()  # of the web page, in addition to the names of its Service
    tls_secret: str = ""  # with tls.crt and tls.key; empty: each server creates its own certificate

    def __post_init__(self) -> None:
        _check_format(_LABEL, self.namespace, "--namespace", "lower case letters, digits and dashes, 63 at most")
        _check_format(
            _IMAGE, self.image, "--image", "a name with a tag or a digest, such as registry.example.com/argosy:1.0"
        )
        if self.tls_secret:
            allowed = "the name of a Secret of that namespace: lower case letters, digits, dashes and dots, 253 at most"
            _check_format(_SUBDOMAIN, self.tls_secret, "--tls-secret", allowed)
        for name in self.hostnames:
            _check_format(_HOST, name, "--hostname", "a hostname as in a URL, without a port")


def has_registry(image: str) -> bool:
    """Return True if the image has a registry. oci: a host has a dot or a port, or is localhost."""
    host, slash, _ = image.partition("/")
    return bool(slash) and ("." in host or ":" in host or host == "localhost")


def _check_format(pattern: re.Pattern[str], text: str, flag: str, allowed: str) -> None:
    if not pattern.fullmatch(text):
        raise UserError(f"invalid value {text[:80]!r}; expected {allowed}", where=flag)
