"""Translates git's error output into SourceErrors.

In: stderr of git. Out: a SourceError that says what to do next. Never: quotes stderr unredacted: it may contain
secrets or escape sequences.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, unquote_plus, urlsplit

from argosy.errors import CorruptSource, SourceError, SourceRefused, SourceTooLarge, SourceUnreachable, UnknownRef
from argosy.gitops.source.git.command import GitFailed
from argosy.observability.redaction.secret_encodings import list_url_forms
from argosy.observability.redaction.text_redaction import (
    THREE_ASTERISKS,
    USER_INFO,
    ValueRedactor,
    list_words,
    redact_http_credentials,
)

_QUOTED_ADDRESS = re.compile(r"'\w+://[^']*'")  # a repository name may look like an error
# Paths of temporary files that are deleted by now.
_CERTIFICATE_FILE = re.compile(r"\s*\(?CAfile: .*|((?:cert|certificate|key|from) file|certificate from):? '?/\S+")
_NON_PRINTABLE = re.compile(r"[^\x20-\x7e]+")
MIN_SECRET_CHARACTERS = 4
MAX_MESSAGE_LENGTH = 300
MAX_DECODINGS = 5  # of requested words; a host decodes a URL once or twice
TOO_LARGE_MESSAGE = (
    "the repository exceeds the size limit of one fetch; split it, keep large files outside Git, or raise the "
    "setting source.limit.fetch.bytes"
)

# The first pattern that matches decides.
ERROR_PATTERNS: tuple[tuple[str, type[SourceError], str], ...] = (
    (
        r"not our ref|couldn't find remote ref|unadvertised object",
        UnknownRef,
        "the host has no such commit or does not serve it; name a branch or tag that contains it",
    ),
    (
        r"No space left|Disk quota|Read-only file system",
        SourceUnreachable,
        "the disk of the mirrors is full or read-only; free some space",
    ),
    (
        r"dubious ownership|detected dubious",
        SourceRefused,
        "the folder belongs to another user; change its owner to the user that argosy runs as",
    ),
    (
        r"Host key verification failed|No .*host key is known|REMOTE HOST IDENTIFICATION",
        SourceRefused,
        "the host's ssh key is not known; add it to ssh_known_hosts in the ConfigMap argocd-ssh-known-hosts-cm",
    ),
    (
        r"Authentication failed|could not read Username|could not read Password|Permission denied( \(|, please)|"
        r"error: 40[13]|terminal prompts disabled|Load key",
        SourceRefused,
        "the host wants other credentials; check the Secret with the label argocd.argoproj.io/secret-type "
        "for this address",
    ),
    (
        r"transport '.*' not allowed|not allowed by",
        SourceRefused,
        "the protocol is not allowed",
    ),
    (
        r"unable to update url base from redirection|error: 30[1278]",
        SourceRefused,
        "the host redirects to another address, and redirects are not followed; use the new address",
    ),
    (
        r"does not match target host|no alternative certificate subject name",
        SourceRefused,
        "the host's certificate is for another host; check the address",
    ),
    (
        r"certificate has expired|certificate is not yet valid",
        SourceRefused,
        "the host's certificate has expired or is not valid yet; renew it, and check the clock of this machine",
    ),
    (
        r"error setting certificate (verify|file)|error reading (X\.509|ca cert)|error adding trust anchors|"
        r"could not load .*client certificate|unable to (set|use) (private key|client certificate)|"
        r"Private key does not match|[Pp]roblem with the (local SSL certificate|SSL CA cert)",
        SourceRefused,
        "the certificate of the authority or of the client cannot be read; check the host's entry in the ConfigMap "
        "argocd-tls-certs-cm, and tlsClientCertData and tlsClientCertKey in its Secret",
    ),
    (
        r"certificate problem|certificate verification failed|unable to get local issuer|"
        r"server verification failed|verify result",
        SourceRefused,
        "the host's certificate is not trusted; add its authority to the ConfigMap argocd-tls-certs-cm, or renew the "
        "certificate if it has expired",
    ),
    (
        r"alert.*certificate|certificate required",
        SourceRefused,
        "the host refuses the client certificate; check tlsClientCertData and tlsClientCertKey in its Secret",
    ),
    (
        r"non-properly terminated|pull function|push function|SSL_ERROR_SYSCALL|SSL_(read|write)|unexpected eof|"
        r"(SSL|TLS).*(Connection (was )?reset|timed out)",
        SourceUnreachable,
        "the host does not answer; argosy will retry",
    ),
    (
        r"(unable to access ''|curl \d+)(?!.*([Rr]esolve|[Cc]onnect to)).*certificate",
        SourceRefused,
        "the host's certificate is not accepted; check it, and its authority in the ConfigMap argocd-tls-certs-cm",
    ),
    (
        r"gnutls_handshake|SSL routines|TLS|SSL",
        SourceRefused,
        "the TLS handshake failed; check that the host speaks TLS 1.2 or newer on this port",
    ),
    (
        r"File too large",
        SourceTooLarge,
        TOO_LARGE_MESSAGE,
    ),
    (
        r"does not appear to be a git repository|[Rr]epository .*not found|not found: did you run|error: 404|"
        r"repository '.*' does not exist",
        SourceRefused,
        "repository not found, or the credentials may not read it; check the address and its Secret",
    ),
    (
        r"fsck error|bad object|object corrupt|is corrupt|inflate|did not send all necessary objects|index-pack failed|"
        r"unpack-objects|missing (blob|tree|commit)|invalid (object|index|pack|sha1)|bad (tree|config|pack|signature)|"
        r"not a git repository|(unexpected|unterminated) line|unable to (read|find|parse)|packfile|broken",
        CorruptSource,
        "the repository contains damaged or forbidden objects; run `git fsck` in it",
    ),
    (
        r"[Cc]ould not resolve|Name or service|Temporary failure in name",
        SourceUnreachable,
        "the host's name cannot be resolved; check the address and the DNS",
    ),
    (
        r"Connection (refused|reset|timed out|closed)|Couldn't connect|Failed to connect|unreachable|timed out|"
        r"No route|early EOF|hung up|error: 5\d\d|error: 429|Could not read from remote",
        SourceUnreachable,
        "the host does not answer; argosy will retry",
    ),
)


def build_source_error(
    failed: GitFailed, where: str, folder: Path | None, secrets: Iterable[str] = (), requested: Iterable[str] = ()
) -> SourceError:
    """Build the error. `where` is the URL; `requested` are the arguments of git, such as refs of an Application."""
    stderr = _QUOTED_ADDRESS.sub("''", failed.stderr)
    kinds = ((kind, hint) for pattern, kind, hint in ERROR_PATTERNS if re.search(pattern, stderr))
    kind, hint = next(kinds, (SourceError, "read git's message, and try the same address by hand"))
    quoted = failed.stderr.replace(str(folder), "the mirror") if folder else failed.stderr
    quoted = redact(_CERTIFICATE_FILE.sub(r"\1", _find_error_line(quoted)), secrets, (where, *requested))
    return kind(f"{hint} (git: {quoted})" if quoted else hint, where=where)


def _find_error_line(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return next((line for line in lines if line.startswith(("fatal:", "error:", "ERROR:"))), lines[-1] if lines else "")


def redact(text: str, secrets: Iterable[str] = (), requested: Iterable[str] = ()) -> str:
    """Redact known secrets and text that looks like one, and replace non-ASCII and control characters.

    Text in `requested` stays, except for a user in a URL. The author of an Application chooses its URL and refs: if a
    guessed credential there were redacted, that would confirm the guess. A host may decode the request, so a secret
    stays in all its forms if `requested` contains one of them.
    """
    requested_text = "\n".join(_decoded_spellings(requested))
    parts = {part for value in secrets for part in list_words(value, MIN_SECRET_CHARACTERS)}
    redacted_forms: set[str] = set()
    for part in parts:
        forms = list_url_forms(part)
        if not any(form in requested_text for form in forms):
            redacted_forms.update(forms)
    text = ValueRedactor(redacted_forms, THREE_ASTERISKS).redact_text(text)
    return _NON_PRINTABLE.sub("?", redact_http_credentials(text, THREE_ASTERISKS))[:MAX_MESSAGE_LENGTH]


def _decoded_spellings(requested: Iterable[str]) -> Iterator[str]:
    """Yield the words as written and as a host may echo them: percent-decoded, with a lower-case host name."""
    for word in requested:
        spelling = USER_INFO.sub("", word)
        yield spelling
        with suppress(ValueError):
            yield unicodedata.normalize("NFKC", urlsplit(spelling).hostname or "").lower()
        for _ in range(MAX_DECODINGS):
            yield unquote_plus(spelling)
            spelling = unquote(spelling)
            yield spelling
