"""The subject of an X.509 certificate, as Go prints it.

In: a certificate in PEM. Out: a text such as `CN=git.example.com,O=Example`. Never: verifies the certificate.
"""

from __future__ import annotations

import re
from typing import Final

# go: the order of pkix.Name, reversed as RFC 2253 wants; attributes of other types are left out
ATTRIBUTES: Final = {
    "SERIALNUMBER": "2.5.4.5",
    "CN": "2.5.4.3",
    "POSTALCODE": "2.5.4.17",
    "STREET": "2.5.4.9",
    "ST": "2.5.4.8",
    "L": "2.5.4.7",
    "OU": "2.5.4.11",
    "O": "2.5.4.10",
    "C": "2.5.4.6",
}
_SPECIAL: Final = re.compile(r'[,+"\\<>;]|^[# ]|(?!^) $')


def read_certificate_subject(pem: str) -> str:
    """Raises ValueError if this is not a certificate."""
    from cryptography import x509

    subject = x509.load_pem_x509_certificate(pem.encode()).subject
    parts = []
    for name, oid in ATTRIBUTES.items():
        attributes = subject.get_attributes_for_oid(x509.ObjectIdentifier(oid))
        if attributes:
            parts.append("+".join(f"{name}={_escape(attribute.value)}" for attribute in attributes))
    return ",".join(parts)


def _escape(value: str | bytes) -> str:
    text = value if isinstance(value, str) else value.decode("utf-8", "replace")
    return _SPECIAL.sub(lambda match: f"\\{match[0]}", text)
