"""Health checks into an Argo CD, and proof that they arrived.

In: rules, an installation. Out: merged entries, told step by step. Never: loses an entry of others.
"""
