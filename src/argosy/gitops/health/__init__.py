"""Assesses the health of live manifests as Argo CD does.

In: live manifests and facts about the cluster (StorageClass modes, …). Out: an Assessment, or None if the kind has no
health. Never: reads a cluster; runs a user's script in this process.
"""
