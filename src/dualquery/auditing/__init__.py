"""PRIVATE. An audit of a run on a private table, for the curator's eyes alone.

Is every record read for itself, does anything besides noise and draws leave the table, does the
noise match the statement, and how well can neighbours really be told apart? Nothing of it may be
published. Only the entrance and `cli` import it. Start reading at `run`.
"""
