"""`python -m argosy`: the same as the `argosy` command."""

from argosy.cli import main

raise SystemExit(main())
