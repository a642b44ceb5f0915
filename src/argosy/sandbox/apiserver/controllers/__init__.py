"""Controllers that every cluster needs: namespaces, CRDs, garbage collection, Event expiry, bootstrap objects.

Each one is triggered by committed events, reconciles one key at a time, and writes through the registry like a client.
"""
