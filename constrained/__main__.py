"""`python -m constrained`: the command line."""

from __future__ import annotations

from constrained.cli import main

if __name__ == "__main__":
    main()
