"""`argosy kubectl` and `argosy oc`: a built-in kubectl for machines without one, and oc's own verbs.

In: a verb with its flags, a cluster. Out: kubectl's output. Never: replaces an installed kubectl.
"""
