"""Whose Secrets a text may quote: what of redaction needs Applications, projects, and manifests in Git.

`observability.redaction` finds and masks values, and decides by SecretScope and SecretOrigin values and by PublicNames.
They are built here, because only AppProject rules, tracking labels and cached renders tell which tenant can read a
Secret, and which words a tenant wrote.
"""
