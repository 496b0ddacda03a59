"""Pages made from the public side of a release."""
