"""The store: one SQLite file, owned by one process, through apsw. No other room knows SQL or apsw."""
