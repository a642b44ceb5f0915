"""What boards show of models, notebooks, environments and events: made from what is already known.

In: manifests of a cache, a session of promotions. Out: frozen values. Never: asks a cluster; decides who may see it.
"""
