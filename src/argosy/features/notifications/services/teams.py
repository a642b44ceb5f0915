"""Microsoft Teams service: posts a card to the webhook of a channel.

In: a delivery. Out: a request. Never: puts the webhook URL into an error message, because it is a credential.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.errors import UserError
from argosy.features.notifications.services.delivery import Delivery, json_part

TAKEN: Final = (b"1", b"")


def send_teams(delivery: Delivery) -> None:
    urls = delivery.options.get("recipientUrls")
    url = urls.get(delivery.recipient) if isinstance(urls, dict) else None
    if not url:
        raise UserError(f"service.teams has no recipientUrls entry for {delivery.recipient}; add one")
    said = delivery.part("teams")
    headers = {"Content-Type": "application/json"}
    if template := str(said.get("template") or ""):
        json_part(template, "teams.template")
        answered = delivery.taken(delivery.ask("POST", str(url), template.encode(), headers), "Teams")
    else:
        answered = delivery.post_json(str(url), _card(delivery, said), {}, "Teams")
    if answered.code == 200 and answered.body.strip() not in TAKEN and not answered.body.startswith(b"{"):
        raise UserError("Teams refused the card; check that the webhook still exists")


def _card(delivery: Delivery, said: dict[str, Any]) -> dict[str, Any]:
    text = str(said.get("text") or delivery.message)
    title = str(said.get("title") or "")
    card: dict[str, Any] = {
        "@type": "MessageCard",
        "context": "https://schema.org/extensions",
        "title": title,
        "summary": str(said.get("summary") or title or text[:100]),
        "text": text,
    }
    if colour := str(said.get("themeColor") or ""):
        card["themeColor"] = colour
    sections = json_part(str(said.get("sections") or ""), "teams.sections") or []
    if facts := json_part(str(said.get("facts") or ""), "teams.facts"):
        sections = [*sections, {"facts": facts}]
    if sections:
        card["sections"] = sections
    if actions := json_part(str(said.get("potentialAction") or ""), "teams.potentialAction"):
        card["potentialAction"] = actions
    return card
