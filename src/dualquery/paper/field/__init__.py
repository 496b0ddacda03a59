"""All methods on the same tables with the same promise: from 15 to 512,000 columns.

`settings` says what is asked of which table, `methods` how each method answers, `alone` runs one
of them in a process of its own within limits, `runs` makes what is missing and keeps it, `verdicts`
and `page` say what follows. Start reading at `runs`. Every run is seeded and NOT PRIVATE.
"""
