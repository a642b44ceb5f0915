"""`python -m argosy`: the same as the `argosy` command."""

from argosy.main import main

raise SystemExit(main())
