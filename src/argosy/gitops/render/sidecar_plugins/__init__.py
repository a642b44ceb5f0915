"""Renders sources with plug-ins that run in containers of their own, as Argo CD's sidecars do.

`sidecar_session` chooses the plug-in of a source and asks it; `plugin_client` speaks its protocol.
"""
