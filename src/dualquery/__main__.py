"""`python -m dualquery` is the command too."""

from __future__ import annotations

from dualquery.cli import main

if __name__ == "__main__":
    main()
