"""What a table can hold, and what can be asked about one record. All of it is declared and public.

Attributes, schemas and their files, constraints, literals and queries, the query language. Every
room except `base` may import this one. Start reading at `attributes`, then `schema` and `query`.
"""
