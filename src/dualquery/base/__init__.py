"""Tools without a subject of their own: errors, checks, files, threads, ragged arrays, compilation.

`stored` has the types of what files hold. Every room may import this one, and this one imports no
other. Start reading at `errors`, because its classes are part of the interface.
"""
