"""PRIVATE. An audit of a run on a private table, for the curator's eyes: NOT PRIVATE.

Is every record read for itself, does anything besides noise and draws leave the table, does the
noise match the statement, and how well can neighbours really be told apart? Start reading at `run`.
"""
