"""What is claimed to be fast, against what a user would do instead."""
