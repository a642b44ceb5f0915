"""Judge how live manifests fare, as Argo CD does.

In: live manifests and small facts (StorageClass modes, …). Out: an Assessment, or None where a kind has no health.
Never: looks anything up itself; runs a user's script in this process.
"""
