"""The game between the query player and the data player."""
