"""Puts a definition into config.db as a build before sealed definitions kept it."""

import sqlite3
import sys

path, definition = sys.argv[1:]
db = sqlite3.connect(path)
for table in ("flow", "flow_version"):
    db.execute(f"UPDATE {table} SET yaml_config = ?, sealed_config = NULL", (definition,))
db.execute("DELETE FROM meta WHERE name LIKE 'literal_secrets%'")
db.commit()
