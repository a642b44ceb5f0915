"""What an installation connects to: repositories, clusters, and whom to believe; kept as Argo CD keeps them."""
