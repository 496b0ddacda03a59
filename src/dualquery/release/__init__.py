"""The release directory and what can be asked of it. Public side."""
