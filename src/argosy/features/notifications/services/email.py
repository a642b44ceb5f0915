"""Email service. In: a delivery. Out: a mail accepted by the SMTP server. Never: sends a password without TLS."""

from __future__ import annotations

from argosy.errors import UserError
from argosy.features.notifications.services.delivery import Delivery
from argosy.http_client.smtp import Mail, MailServer, send_mail


def send_email(delivery: Delivery) -> None:
    host, port = delivery.option("host"), delivery.option("port", "25")
    if not host or not port.isdecimal():
        raise UserError(f"service.email.{delivery.service} needs host and port; set both")
    if not delivery.recipient:
        raise UserError("email needs an address as its recipient; subscribe with one")
    said = delivery.part("email")
    server = MailServer(
        host,
        int(port[:5]),
        delivery.option("username"),
        delivery.option("password"),
        insecure=delivery.is_on("insecure_skip_verify", "insecureSkipVerify"),
    )
    mail = Mail(
        delivery.option("from") or delivery.option("username"),
        delivery.recipient,
        str(said.get("subject") or ""),
        str(said.get("body") or delivery.message),
        is_html=delivery.is_on("html"),
    )
    send_mail(server, mail, delivery.hosts)
