"""argosy itself in a cluster: its manifests, what bringing them there changes, and what takes them away.

In: what people ask for, and what a cluster has. Out: manifests, a plan, its steps one after another. Never: prints;
touches what an Application delivered, unless told to.
"""
