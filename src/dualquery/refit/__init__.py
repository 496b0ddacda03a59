"""A model of the data, fitted to the draws alone. Public side."""
