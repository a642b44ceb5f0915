"""`/api/v1/settings`: settings of the installation for clients.

In: a request. Out: Argo CD's settings document; without a session only what is needed to sign in. Never: a secret of an
identity provider; the list of tools, to an unauthenticated caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from argosy.errors import UserError
from argosy.gitops.health.setting_kind_names import parse_key_kind
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.objects import read_yaml
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP
from argosy.web.api import request_response_schemas as schema
from argosy.web.auth.accounts import LOGIN, read_accounts
from argosy.web.request import RequestContext
from argosy.web.responses import JsonResponse
from argosy.web.route import Public, Route, SignedIn

CUSTOMIZATIONS_PREFIX: Final = "resource.customizations."
OIDC_FIELDS: Final = {
    "name": "name",
    "issuer": "issuer",
    "clientID": "clientID",
    "cliClientID": "cliClientID",
    "requestedScopes": "scopes",
    "requestedIDTokenClaims": "idTokenClaims",
    "enablePKCEAuthentication": "enablePKCEAuthentication",
}
SCRIPT_FIELDS: Final = {"health": "healthLua", "actions": "actions"}
UI_FIELDS: Final = {
    "ui.bannercontent": "uiBannerContent",
    "ui.bannerurl": "uiBannerURL",
    "ui.bannerposition": "uiBannerPosition",
    "ui.cssurl": "uiCssURL",
    "statusbadge.url": "statusBadgeRootUrl",
    "passwordPattern": "passwordPattern",
    "installationID": "installationID",
}


async def get_settings(request: RequestContext) -> JsonResponse:
    data = _read_config_map(request, "argocd-cm")
    if request.caller.is_nobody:
        return JsonResponse(build_public_settings(data))
    return JsonResponse({**build_public_settings(data), **_build_private_settings(request, data)})


def build_public_settings(data: Mapping[str, str]) -> dict[str, Any]:
    """argo: settings that a client needs to sign in."""
    accounts = read_accounts(data, {})
    public_settings: dict[str, Any] = {
        "url": data.get("url", ""),
        "userLoginsDisabled": not any(account.has_capability(LOGIN) for account in accounts.values()),
    }
    if oidc := read_public_oidc_config(data.get("oidc.config", "")):
        public_settings["oidcConfig"] = oidc
    return public_settings


def read_public_oidc_config(text: str) -> dict[str, Any]:
    """Return the public fields of oidc.config; values that refer to a Secret are left out."""
    try:
        config = read_yaml(text, where="oidc.config") if text.strip() else None
    except UserError:
        return {}
    values = config if isinstance(config, dict) else {}
    return {
        wire_name: values[name]
        for name, wire_name in OIDC_FIELDS.items()
        if name in values and "$" not in str(values[name])
    }


def _build_private_settings(request: RequestContext, data: Mapping[str, str]) -> dict[str, Any]:
    rules = request.cluster_view.rules
    parameters = _read_config_map(request, "argocd-cmd-params-cm")
    build = rules.build
    return {
        "statusBadgeEnabled": data.get("statusbadge.enabled", "").strip() == "true",
        "appLabelKey": rules.tracking.label,
        "trackingMethod": rules.tracking.method,
        "controllerNamespace": request.service.control_namespace,
        "appsInAnyNamespaceEnabled": bool(parameters.get("application.namespaces", "").strip()),
        "execEnabled": False,
        "impersonationEnabled": rules.impersonation.is_enabled,
        "kustomizeOptions": {"buildOptions": data.get("kustomize.buildOptions", "")},
        "kustomizeVersions": sorted(build.kustomize_binaries),
        "plugins": _build_plugin_list(request),
        "resourceOverrides": build_resource_overrides(data),
        "googleAnalytics": {},
        "help": {"chatUrl": data.get("help.chatUrl", ""), "chatText": data.get("help.chatText", "")},
        "uiBannerPermanent": data.get("ui.bannerpermanent", "") == "true",
        **{wire_name: data[name] for name, wire_name in UI_FIELDS.items() if data.get(name)},
    }


def build_resource_overrides(data: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """argo: by `group/Kind`, from per-kind keys and from the combined map."""
    overrides: dict[str, dict[str, Any]] = {}
    combined = _read_yaml_map(data.get("resource.customizations", ""))
    for name, customization in combined.items():
        if isinstance(customization, dict):
            texts = {"health.lua": "healthLua", "actions": "actions"}
            overrides[str(name)] = {
                wire_name: str(customization[key]) for key, wire_name in texts.items() if key in customization
            }
    for key, text in data.items():
        kind, dot, name = (
            key.removeprefix(CUSTOMIZATIONS_PREFIX).partition(".")
            if key.startswith(CUSTOMIZATIONS_PREFIX)
            else ("", "", "")
        )
        pattern = parse_key_kind(name).pattern if dot else ""
        if not pattern:
            continue
        override = overrides.setdefault(pattern, {})
        if kind in SCRIPT_FIELDS:
            override[SCRIPT_FIELDS[kind]] = text
        elif kind == "useOpenLibs":
            override["useOpenLibs"] = text.strip() == "true"
        elif kind in ("ignoreDifferences", "ignoreResourceUpdates"):
            override[kind] = _read_yaml_map(text)
    return overrides


def _read_yaml_map(text: str) -> dict[str, Any]:
    try:
        value = read_yaml(text, where="argocd-cm") if text.strip() else {}
    except UserError:
        return {}
    return value if isinstance(value, dict) else {}


async def list_plugins(request: RequestContext) -> JsonResponse:
    return JsonResponse({"plugins": _build_plugin_list(request)})


def _build_plugin_list(request: RequestContext) -> list[dict[str, str]]:
    return [{"name": name} for name in sorted(request.cluster_view.rules.build.plugins)]


def _read_config_map(request: RequestContext, name: str) -> dict[str, str]:
    config_map = request.cluster_view.cache.get(ResourceKey(*CONFIG_MAP, request.service.control_namespace, name))
    data = as_mapping((config_map or {}).get("data"))
    return {key: text for key, text in data.items() if isinstance(text, str)}


PLUGIN_LIST_SCHEMA: Final = schema.build_array_schema(schema.build_object_schema(name=schema.STRING_SCHEMA))
ROUTES = (
    Route(
        "GET",
        "/api/v1/settings",
        Public("clients need it to find out how to sign in"),
        get_settings,
        "Settings. Without a session, only the fields that are needed to sign in.",
        response_schema=schema.build_object_schema(
            url=schema.STRING_SCHEMA,
            userLoginsDisabled=schema.BOOLEAN_SCHEMA,
            oidcConfig=schema.OBJECT_SCHEMA,
            statusBadgeEnabled=schema.BOOLEAN_SCHEMA,
            appLabelKey=schema.STRING_SCHEMA,
            trackingMethod=schema.STRING_SCHEMA,
            kustomizeVersions=schema.build_array_schema(schema.STRING_SCHEMA),
            plugins=PLUGIN_LIST_SCHEMA,
            resourceOverrides=schema.OBJECT_SCHEMA,
        ),
        tag="settings",
        operation_id="SettingsService_Get",
    ),
    Route(
        "GET",
        "/api/v1/settings/plugins",
        SignedIn(),
        list_plugins,
        "Config management plugins.",
        response_schema=schema.build_object_schema(plugins=PLUGIN_LIST_SCHEMA),
        tag="settings",
        operation_id="SettingsService_GetPlugins",
    ),
)
