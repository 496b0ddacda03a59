"""Privacy: what a run releases, what it costs, and how to draw without leaking more."""
