"""Web pages and REST API of an argosy installation.

In: a Site, routes, and HTTP requests. Out: responses, redacted as the last step. Never: answers a request that did not
pass the middleware; accesses a cluster except through an ApplicationService.
"""
