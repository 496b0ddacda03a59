"""Tables in files of other programs, one adapter per format. Private side.

An adapter gives columns whose types the file itself declares, or cells one by one as text. It never
finds a type for a block or a column, because then one cell would change how others are read.
"""
