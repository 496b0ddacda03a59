"""The game: what is drawn and measured, in which order, and how the data player answers.

`tables` is the run that measures tables, the default; `loop` is the game of draws alone. Beside
them stand their plans, the players, the journal and the rehearsal. Nothing here reads rows: counts
come from an engine, and only draws and measurements leave. `release` and the private rooms may
import this one. Start reading at `loop`, which is short; then `query_player` and `tables`.
"""
