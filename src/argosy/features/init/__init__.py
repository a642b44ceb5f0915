"""`argosy init`: creates a new repository from templates.

In: a name and a URL. Out: committed files. Never: leaves a partial repository; commits a secret.
"""
