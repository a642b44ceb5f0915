"""Argo CD API routes for host certificates and GPG keys.

In: a request. Out: RepositoryCertificates and GnuPGPublicKeys in Argo CD's shapes. Never: accepts a
private key.
"""

from __future__ import annotations

from typing import Final

from argosy.errors import UserError
from argosy.features.repositories import certificates, gpg_keys
from argosy.features.repositories.certificates import Choice
from argosy.web.api import json_schemas as schema
from argosy.web.api.body_fields import Body
from argosy.web.api.paging import ARGO_PAGING, part
from argosy.web.caller_clients import desk_of
from argosy.web.request import Asked
from argosy.web.responses import Json
from argosy.web.route import Found, May, Parameter, Route

CERTIFICATE: Final = schema.fields(
    serverName=schema.TEXT, certType=schema.TEXT, certSubType=schema.TEXT, certData=schema.TEXT, certInfo=schema.TEXT
)
CERTIFICATES: Final = schema.fields(metadata=schema.ANY, items=schema.many(CERTIFICATE))
KEY: Final = schema.fields(  # argo: with keyData, which is public, in the response for a single key
    keyID=schema.TEXT, fingerprint=schema.TEXT, owner=schema.TEXT, trust=schema.TEXT, subType=schema.TEXT
)
KEYS: Final = schema.fields(metadata=schema.ANY, items=schema.many(KEY))


async def all_of_them(asked: Asked) -> Found | None:
    """argo: RBAC policies do not name single certificates or keys."""
    return Found(None, "")


def _choice(asked: Asked) -> Choice:
    query = asked.query
    return Choice(query.text("hostNamePattern"), query.text("certType"), query.text("certSubType"))


async def listed(asked: Asked) -> Json:
    found = await certificates.certificates(desk_of(asked), _choice(asked))
    return part(asked, [each.document() for each in found])


async def created(asked: Asked) -> Json:
    new = certificates.read_certificates(await asked.mapping())
    made = await certificates.add(desk_of(asked), new, replaces=asked.query.flag("upsert"))
    return Json({"metadata": {}, "items": [each.document() for each in made]})


async def deleted(asked: Asked) -> Json:
    gone = await certificates.remove(desk_of(asked), _choice(asked))
    return Json({"metadata": {}, "items": [each.document() for each in gone]})


async def keys(asked: Asked) -> Json:
    wanted = asked.query.text("keyID")
    found = await gpg_keys.keys(desk_of(asked))
    told = [gpg_keys.document(each) for each in found.values() if wanted in ("", each.id)]
    return part(asked, told)


async def one_key(asked: Asked) -> Found | None:
    found = (await gpg_keys.keys(desk_of(asked))).get(asked.values["keyID"])
    return Found(found, "") if found else None


async def got_key(asked: Asked) -> Json:
    return Json(gpg_keys.document(asked.subject, is_whole=True))


async def created_keys(asked: Asked) -> Json:
    text = Body(await asked.mapping()).text("keyData")
    new, skipped = await gpg_keys.add(desk_of(asked), text, replaces=asked.query.flag("upsert"))
    made = {"metadata": {}, "items": [gpg_keys.document(each) for each in new]}
    return Json({"created": made, "skipped": skipped})


async def deleted_key(asked: Asked) -> Json:
    if not (wanted := asked.query.text("keyID")):
        raise UserError("is required; pass the id of the key", where="keyID")
    await gpg_keys.remove(desk_of(asked), wanted)
    return Json({})


CHOICE: Final = (
    Parameter("hostNamePattern", "Only entries whose host matches this glob."),
    Parameter("certType", "ssh or https."),
    Parameter("certSubType", "Algorithm of the key."),
)
UPSERT: Final = Parameter("upsert", "Replace existing entries.", "boolean")
KEY_ID: Final = Parameter("keyID", "Id of the key.")
ROUTES = (
    Route(
        "GET", "/api/v1/certificates", May("certificates", "get", all_of_them), listed, "List host certificates.",
        query=(*CHOICE, *ARGO_PAGING), gives=CERTIFICATES, tag="certificates",
        operation="CertificateService_ListCertificates",
    ),
    Route(
        "POST", "/api/v1/certificates", May("certificates", "create", all_of_them), created,
        "Add host certificates.", query=(UPSERT,), takes=CERTIFICATES, gives=CERTIFICATES, tag="certificates",
        operation="CertificateService_CreateCertificate",
    ),
    Route(
        "DELETE", "/api/v1/certificates", May("certificates", "delete", all_of_them), deleted,
        "Remove host certificates.", query=CHOICE, gives=CERTIFICATES, tag="certificates",
        operation="CertificateService_DeleteCertificate",
    ),
    Route(
        "GET", "/api/v1/gpgkeys", May("gpgkeys", "get", all_of_them), keys, "List GPG public keys.",
        query=(KEY_ID, *ARGO_PAGING), gives=KEYS, tag="gpgkeys", operation="GPGKeyService_List",
    ),
    Route(
        "POST", "/api/v1/gpgkeys", May("gpgkeys", "create", all_of_them), created_keys, "Add GPG public keys.",
        query=(UPSERT,), takes=schema.fields("keyData", keyData=schema.TEXT),
        gives=schema.fields(created=KEYS, skipped=schema.many(schema.TEXT)), tag="gpgkeys",
        operation="GPGKeyService_Create",
    ),
    Route(
        "DELETE", "/api/v1/gpgkeys", May("gpgkeys", "delete", all_of_them), deleted_key, "Remove a GPG public key.",
        query=(Parameter("keyID", "Id of the key.", is_required=True),), gives=schema.NOTHING, tag="gpgkeys",
        operation="GPGKeyService_Delete",
    ),
    Route(
        "GET", "/api/v1/gpgkeys/{keyID}", May("gpgkeys", "get", one_key), got_key, "Get a GPG public key.",
        gives=KEY, tag="gpgkeys", operation="GPGKeyService_Get",
    ),
)  # fmt: skip
