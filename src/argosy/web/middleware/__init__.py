"""Middleware that every request passes, in this order: limits, host, route, authentication, CSRF, authorization; and
every response: redaction, headers, audit. No step is optional, and routes do not know about them."""
