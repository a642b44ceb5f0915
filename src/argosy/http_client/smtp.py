"""Sends one mail to one recipient by SMTP.

In: a mail and a mail server. Out: nothing, after the server accepted it. Never: sends a password unencrypted.
"""

from __future__ import annotations

import email.policy
import smtplib
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Final

from argosy.errors import TransientError, UserError
from argosy.http_client.allowed_hosts import ANYWHERE, HostRules
from argosy.http_client.checked_request import SECONDS, Unanswered, trust

SMTPS: Final = 465
HERE: Final = ("127.0.0.1", "::1")


@dataclass(frozen=True)
class MailServer:
    host: str
    port: int
    username: str = ""
    password: str = ""
    insecure: bool = False


@dataclass(frozen=True)
class Mail:
    sender: str
    to: str
    subject: str
    body: str
    is_html: bool = False


def send_mail(server: MailServer, mail: Mail, rules: HostRules = ANYWHERE, seconds: float = SECONDS) -> None:
    message = _message(mail)
    address, port = rules.addresses(server.host, server.port)[0]
    context = trust(insecure=server.insecure)
    try:
        line = smtplib.SMTP_SSL(timeout=seconds, context=context) if port == SMTPS else smtplib.SMTP(timeout=seconds)
        setattr(line, "_host", server.host)  # noqa: B010 - the name that the certificate is verified for
        line.connect(address, port)
    except (OSError, smtplib.SMTPException) as error:
        why = type(error).__name__
        raise TransientError(f"{server.host}: cannot be reached ({why}); check that it is running") from error
    is_sent = False
    try:
        _introduce(line, server, address)
        is_sent = True
        line.send_message(message, mail.sender, [mail.to])
    except smtplib.SMTPResponseException as error:
        kind = TransientError if 400 <= error.smtp_code < 500 else UserError
        raise kind(f"{server.host}: refused the mail ({error.smtp_code}); see the log of the mail server") from error
    except smtplib.SMTPRecipientsRefused as error:
        raise UserError(f"{server.host}: refused the recipient {mail.to}; correct it") from error
    except (OSError, smtplib.SMTPException) as error:
        kind = Unanswered if is_sent else TransientError
        why = type(error).__name__
        raise kind(f"{server.host}: the connection broke ({why}); check there if the mail arrived") from error
    finally:
        line.close()


def _introduce(line: smtplib.SMTP, server: MailServer, address: str) -> None:
    line.ehlo()
    is_private = isinstance(line, smtplib.SMTP_SSL)
    if not is_private and line.has_extn("starttls"):
        line.starttls(context=trust(insecure=server.insecure))
        line.ehlo()
        is_private = True
    if server.username:
        if not is_private and address not in HERE:
            raise UserError(f"{server.host}: offers no TLS, so the password would be sent in clear; use port {SMTPS}")
        line.login(server.username, server.password)


def _message(mail: Mail) -> EmailMessage:
    message = EmailMessage(email.policy.SMTP)
    try:
        message["From"], message["To"] = mail.sender, mail.to
        message["Subject"] = " ".join(mail.subject.split())
    except (ValueError, IndexError) as error:
        raise UserError("the sender or recipient is not a valid mail address; correct it") from error
    message.set_content(mail.body, subtype="html" if mail.is_html else "plain")
    return message
