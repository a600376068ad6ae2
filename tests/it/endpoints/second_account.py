"""Copies the configuration of the one account as that of another: every id ends with `_b` there."""

import sqlite3
import sys

TABLES = [
    "account", "environment", "adapter", "flow", "flow_version", "lookup_table", "lookup_entry",
    "connector_instance", "schedule", "batch_job", "published_api", "published_api_version",
    "consumer_key", "policy", "member", "audit_entry",
]

store = sqlite3.connect(sys.argv[1])
store.row_factory = sqlite3.Row
for table in TABLES:
    for row in store.execute(f"SELECT * FROM {table}").fetchall():
        values = dict(row)
        for column, value in values.items():
            is_id = column == "id" or column.endswith("_id") or column == "webhook_token"
            if is_id and isinstance(value, str):
                values[column] = f"{value}_b"
            elif column in ("sha256", "invite_sha256") and value is not None:
                values[column] = bytes(byte ^ 255 for byte in value)
        names = ", ".join(values)
        places = ", ".join("?" * len(values))
        store.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", list(values.values()))
store.commit()
