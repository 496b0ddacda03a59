"""The demo's table: an invented health survey, which a program makes about nobody real.

Only `dualquery demo` imports it. Start reading at `survey`.
"""
