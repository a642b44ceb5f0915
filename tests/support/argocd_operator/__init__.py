"""The operator of OpenShift GitOps (argocd-operator) beside the simulated one: programs, shapes, facts, a recording."""
