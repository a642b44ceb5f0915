"""Served models: what an InferenceService tells of one, and how it is asked. In: manifests. Out: values. Never: I/O."""
