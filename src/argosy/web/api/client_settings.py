"""`/api/v1/settings`: settings of the installation for clients.

In: a request. Out: Argo CD's settings document; without a session only what is needed to sign in. Never: a secret of an
identity provider; the list of tools, to an unauthenticated caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from argosy.errors import UserError
from argosy.gitops.health.kind_keys import from_key
from argosy.gitops.status.wire_format import mapping
from argosy.kube.names import ResourceKey
from argosy.kube.objects import load
from argosy.web.api import json_schemas as schema
from argosy.web.auth.accounts import LOGIN, read_accounts
from argosy.web.request import Asked
from argosy.web.responses import Json
from argosy.web.route import Public, Route, SignedIn

PREFIX: Final = "resource.customizations."
OIDC: Final = {
    "name": "name",
    "issuer": "issuer",
    "clientID": "clientID",
    "cliClientID": "cliClientID",
    "requestedScopes": "scopes",
    "requestedIDTokenClaims": "idTokenClaims",
    "enablePKCEAuthentication": "enablePKCEAuthentication",
}
TEXTS: Final = {"health": "healthLua", "actions": "actions"}
BANNERS: Final = {
    "ui.bannercontent": "uiBannerContent",
    "ui.bannerurl": "uiBannerURL",
    "ui.bannerposition": "uiBannerPosition",
    "ui.cssurl": "uiCssURL",
    "statusbadge.url": "statusBadgeRootUrl",
    "passwordPattern": "passwordPattern",
    "installationID": "installationID",
}


async def got(asked: Asked) -> Json:
    data = _data(asked, "argocd-cm")
    if asked.caller.is_nobody:
        return Json(for_everybody(data))
    return Json({**for_everybody(data), **_for_known(asked, data)})


def for_everybody(data: Mapping[str, str]) -> dict[str, Any]:
    """argo: settings that a client needs to sign in."""
    accounts = read_accounts(data, {})
    found: dict[str, Any] = {
        "url": data.get("url", ""),
        "userLoginsDisabled": not any(each.can(LOGIN) for each in accounts.values()),
    }
    if oidc := oidc_of(data.get("oidc.config", "")):
        found["oidcConfig"] = oidc
    return found


def oidc_of(text: str) -> dict[str, Any]:
    """Return the public fields of oidc.config; values that refer to a Secret are left out."""
    try:
        given = load(text, where="oidc.config") if text.strip() else None
    except UserError:
        return {}
    values = given if isinstance(given, dict) else {}
    return {told: values[name] for name, told in OIDC.items() if name in values and "$" not in str(values[name])}


def _for_known(asked: Asked, data: Mapping[str, str]) -> dict[str, Any]:
    rules = asked.site.lookout.rules
    parameters = _data(asked, "argocd-cmd-params-cm")
    build = rules.build
    return {
        "statusBadgeEnabled": data.get("statusbadge.enabled", "").strip() == "true",
        "appLabelKey": rules.tracking.label,
        "trackingMethod": rules.tracking.method,
        "controllerNamespace": asked.site.desk.control,
        "appsInAnyNamespaceEnabled": bool(parameters.get("application.namespaces", "").strip()),
        "execEnabled": False,
        "impersonationEnabled": rules.impersonation.is_enabled,
        "kustomizeOptions": {"buildOptions": data.get("kustomize.buildOptions", "")},
        "kustomizeVersions": sorted(build.kustomize_binaries),
        "plugins": _plugins(asked),
        "resourceOverrides": overrides_of(data),
        "googleAnalytics": {},
        "help": {"chatUrl": data.get("help.chatUrl", ""), "chatText": data.get("help.chatText", "")},
        "uiBannerPermanent": data.get("ui.bannerpermanent", "") == "true",
        **{told: data[name] for name, told in BANNERS.items() if data.get(name)},
    }


def overrides_of(data: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """argo: by `group/Kind`, from per-kind keys and from the combined map."""
    found: dict[str, dict[str, Any]] = {}
    whole = _yaml(data.get("resource.customizations", ""))
    for name, each in whole.items():
        if isinstance(each, dict):
            texts = {"health.lua": "healthLua", "actions": "actions"}
            found[str(name)] = {told: str(each[key]) for key, told in texts.items() if key in each}
    for key, text in data.items():
        kind, dot, name = key.removeprefix(PREFIX).partition(".") if key.startswith(PREFIX) else ("", "", "")
        pattern = from_key(name).pattern if dot else ""
        if not pattern:
            continue
        override = found.setdefault(pattern, {})
        if kind in TEXTS:
            override[TEXTS[kind]] = text
        elif kind == "useOpenLibs":
            override["useOpenLibs"] = text.strip() == "true"
        elif kind in ("ignoreDifferences", "ignoreResourceUpdates"):
            override[kind] = _yaml(text)
    return found


def _yaml(text: str) -> dict[str, Any]:
    try:
        found = load(text, where="argocd-cm") if text.strip() else {}
    except UserError:
        return {}
    return found if isinstance(found, dict) else {}


async def plugins(asked: Asked) -> Json:
    return Json({"plugins": _plugins(asked)})


def _plugins(asked: Asked) -> list[dict[str, str]]:
    return [{"name": name} for name in sorted(asked.site.lookout.rules.build.plugins)]


def _data(asked: Asked, name: str) -> dict[str, str]:
    found = asked.site.lookout.cache.get(ResourceKey("", "ConfigMap", asked.site.desk.control, name))
    data = mapping((found or {}).get("data"))
    return {key: text for key, text in data.items() if isinstance(text, str)}


PLUGINS: Final = schema.many(schema.fields(name=schema.TEXT))
ROUTES = (
    Route(
        "GET", "/api/v1/settings", Public("clients need it to find out how to sign in"), got,
        "Settings. Without a session, only the fields that are needed to sign in.",
        gives=schema.fields(
            url=schema.TEXT, userLoginsDisabled=schema.FLAG, oidcConfig=schema.ANY, statusBadgeEnabled=schema.FLAG,
            appLabelKey=schema.TEXT, trackingMethod=schema.TEXT, kustomizeVersions=schema.many(schema.TEXT),
            plugins=PLUGINS, resourceOverrides=schema.ANY,
        ),
        tag="settings", operation="SettingsService_Get",
    ),
    Route(
        "GET", "/api/v1/settings/plugins", SignedIn(), plugins, "Config management plugins.",
        gives=schema.fields(plugins=PLUGINS), tag="settings", operation="SettingsService_GetPlugins",
    ),
)  # fmt: skip
