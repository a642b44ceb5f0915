"""Accounts of an installation: who there is, how they show it, and what is changed about them.

In: argocd-cm and argocd-secret in Argo CD's words. Out: accounts, tokens, codes. Never: keeps a password or a token;
replaces what an Argo CD has set up.
"""
