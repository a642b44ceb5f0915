"""Argo CD API routes for host certificates and GPG keys.

In: a request. Out: RepositoryCertificates and GnuPGPublicKeys in Argo CD's shapes. Never: accepts a
private key.
"""

from __future__ import annotations

from typing import Final

from argosy.errors import UserError
from argosy.features.repositories import certificates, gpg_keys
from argosy.features.repositories.certificates import CertificateFilter
from argosy.web.api import request_response_schemas as schema
from argosy.web.api.body_fields import BodyReader
from argosy.web.api.paging import ARGO_PAGING, build_argo_page
from argosy.web.caller_application_service import build_service
from argosy.web.error_details import UncodedError
from argosy.web.request import RequestContext
from argosy.web.responses import JsonResponse
from argosy.web.route import QueryParameter, RequiresPermission, ResolvedObject, Route

CERTIFICATE_SCHEMA: Final = schema.build_object_schema(
    serverName=schema.STRING_SCHEMA,
    certType=schema.STRING_SCHEMA,
    certSubType=schema.STRING_SCHEMA,
    certData=schema.STRING_SCHEMA,
    certInfo=schema.STRING_SCHEMA,
)
CERTIFICATE_LIST_SCHEMA: Final = schema.build_object_schema(
    metadata=schema.OBJECT_SCHEMA, items=schema.build_array_schema(CERTIFICATE_SCHEMA)
)
GPG_KEY_SCHEMA: Final = (
    schema.build_object_schema(  # argo: with keyData, which is public, in the response for a single key
        keyID=schema.STRING_SCHEMA,
        fingerprint=schema.STRING_SCHEMA,
        owner=schema.STRING_SCHEMA,
        trust=schema.STRING_SCHEMA,
        subType=schema.STRING_SCHEMA,
    )
)
GPG_KEY_LIST_SCHEMA: Final = schema.build_object_schema(
    metadata=schema.OBJECT_SCHEMA, items=schema.build_array_schema(GPG_KEY_SCHEMA)
)


async def resolve_unnamed_object(request: RequestContext) -> ResolvedObject | None:
    """argo: RBAC policies do not name single certificates or keys."""
    return ResolvedObject(None, "")


def _read_filter(request: RequestContext) -> CertificateFilter:
    query = request.query
    return CertificateFilter(
        query.get_text("hostNamePattern"), query.get_text("certType"), query.get_text("certSubType")
    )


async def list_certificates(request: RequestContext) -> JsonResponse:
    entries = await certificates.list_certificates(build_service(request), _read_filter(request))
    return build_argo_page(request, [entry.to_wire(with_data=False) for entry in entries])


async def create_certificates(request: RequestContext) -> JsonResponse:
    new = certificates.read_certificates(await request.read_json_object())
    added = await certificates.add_certificates(build_service(request), new, replaces=request.query.get_bool("upsert"))
    return JsonResponse({"metadata": {}, "items": [certificate.to_wire() for certificate in added]})


async def delete_certificates(request: RequestContext) -> JsonResponse:
    removed = await certificates.remove_certificates(build_service(request), _read_filter(request))
    return JsonResponse({"metadata": {}, "items": [certificate.to_removed_wire() for certificate in removed]})


async def list_gpg_keys(request: RequestContext) -> JsonResponse:
    key_id = request.query.get_text("keyID")
    stored_keys = await gpg_keys.list_keys(build_service(request))
    items = [gpg_keys.key_to_wire(key) for key in stored_keys.values() if key_id in ("", key.id)]
    return build_argo_page(request, items)


async def get_gpg_key(request: RequestContext) -> JsonResponse:
    key = (await gpg_keys.list_keys(build_service(request))).get(request.path_parameters["keyID"])
    if key is None:
        raise UncodedError("no such key; list them: GET /api/v1/gpgkeys")
    return JsonResponse(gpg_keys.key_to_wire(key, with_key_data=True))


async def create_gpg_keys(request: RequestContext) -> JsonResponse:
    text = BodyReader(await request.read_json_object()).get_text("keyData")
    new, skipped = await gpg_keys.add_keys(build_service(request), text, replaces=request.query.get_bool("upsert"))
    created_list = {"metadata": {}, "items": [gpg_keys.key_to_wire(key) for key in new]}
    return JsonResponse({"created": created_list, "skipped": skipped})


async def delete_gpg_key(request: RequestContext) -> JsonResponse:
    if not (key_id := request.query.get_text("keyID")):
        raise UserError("is required; pass the id of the key", where="keyID")
    await gpg_keys.remove_key(build_service(request), key_id)
    return JsonResponse({})


FILTER_PARAMETERS: Final = (
    QueryParameter("hostNamePattern", "Only entries whose host matches this glob."),
    QueryParameter("certType", "ssh or https."),
    QueryParameter("certSubType", "Algorithm of the key."),
)
UPSERT_PARAMETER: Final = QueryParameter("upsert", "Replace existing entries.", "boolean")
KEY_ID_PARAMETER: Final = QueryParameter("keyID", "Id of the key.")
ROUTES = (
    Route(
        "GET",
        "/api/v1/certificates",
        RequiresPermission("certificates", "get", resolve_unnamed_object),
        list_certificates,
        "List host certificates.",
        query=(*FILTER_PARAMETERS, *ARGO_PAGING),
        response_schema=CERTIFICATE_LIST_SCHEMA,
        tag="certificates",
        operation_id="CertificateService_ListCertificates",
    ),
    Route(
        "POST",
        "/api/v1/certificates",
        RequiresPermission("certificates", "create", resolve_unnamed_object),
        create_certificates,
        "Add host certificates.",
        query=(UPSERT_PARAMETER,),
        request_schema=CERTIFICATE_LIST_SCHEMA,
        response_schema=CERTIFICATE_LIST_SCHEMA,
        tag="certificates",
        operation_id="CertificateService_CreateCertificate",
    ),
    Route(
        "DELETE",
        "/api/v1/certificates",
        RequiresPermission("certificates", "delete", resolve_unnamed_object),
        delete_certificates,
        "Remove host certificates.",
        query=FILTER_PARAMETERS,
        response_schema=CERTIFICATE_LIST_SCHEMA,
        tag="certificates",
        operation_id="CertificateService_DeleteCertificate",
    ),
    Route(
        "GET",
        "/api/v1/gpgkeys",
        RequiresPermission("gpgkeys", "get", resolve_unnamed_object),
        list_gpg_keys,
        "List GPG public keys.",
        query=(KEY_ID_PARAMETER, *ARGO_PAGING),
        response_schema=GPG_KEY_LIST_SCHEMA,
        tag="gpgkeys",
        operation_id="GPGKeyService_List",
    ),
    Route(
        "POST",
        "/api/v1/gpgkeys",
        RequiresPermission("gpgkeys", "create", resolve_unnamed_object),
        create_gpg_keys,
        "Add GPG public keys.",
        query=(UPSERT_PARAMETER,),
        request_schema=schema.build_object_schema("keyData", keyData=schema.STRING_SCHEMA),
        response_schema=schema.build_object_schema(
            created=GPG_KEY_LIST_SCHEMA, skipped=schema.build_array_schema(schema.STRING_SCHEMA)
        ),
        tag="gpgkeys",
        operation_id="GPGKeyService_Create",
    ),
    Route(
        "DELETE",
        "/api/v1/gpgkeys",
        RequiresPermission("gpgkeys", "delete", resolve_unnamed_object),
        delete_gpg_key,
        "Remove a GPG public key.",
        query=(QueryParameter("keyID", "Id of the key.", is_required=True),),
        response_schema=schema.NOTHING,
        tag="gpgkeys",
        operation_id="GPGKeyService_Delete",
    ),
    Route(
        "GET",
        "/api/v1/gpgkeys/{keyID}",
        RequiresPermission("gpgkeys", "get", resolve_unnamed_object),
        get_gpg_key,
        "Get a GPG public key.",
        response_schema=GPG_KEY_SCHEMA,
        tag="gpgkeys",
        operation_id="GPGKeyService_Get",
    ),
)
