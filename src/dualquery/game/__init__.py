"""The game: the query player, the data players, one round, the loop, the plan, the journal.

Nothing here reads rows. The query player gets private counts from an engine, and all that leaves
it are draws. Start reading at `loop`, which is short; then `query_player` and `model_player`.
"""
