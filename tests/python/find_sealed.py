"""Prints the columns of a SQLite file, given first, in which a value begins with these bytes, given second in hexadecimal
digits, as they are or in base64."""

import base64, sqlite3, sys
header = bytes.fromhex(sys.argv[2])
as_text = tuple(encode(header + b"\0")[:6].decode() for encode in (base64.b64encode, base64.urlsafe_b64encode))
database = sqlite3.connect(sys.argv[1])
# What a virtual table has stands in tables of its own, and Python's SQLite may be older than the one that made it.
TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
for (table,) in database.execute(TABLES).fetchall():
    for column in database.execute(f'PRAGMA table_info("{table}")').fetchall():
        for (value,) in database.execute(f'SELECT "{column[1]}" FROM "{table}"'):
            if isinstance(value, bytes) and value.startswith(header) or isinstance(value, str) and value.startswith(as_text):
                print(f"{table}.{column[1]}")
