"""Changes rows of an audit log as somebody with the file of the store could: tamper.py FILE CHANGE [ENTRY]."""

import sqlite3
import sys

REMOVE_ENTRY = "DELETE FROM audit_entry WHERE id = :entry"
REMOVE_LINK = "DELETE FROM audit_link WHERE entry_id = :entry"
CHANGES = {
    "change": ["UPDATE audit_entry SET actor_name = 'nobody' WHERE id = :entry"],
    "remove": [REMOVE_ENTRY, REMOVE_LINK],
    "remove-entry-alone": [REMOVE_ENTRY],
    "add-without-link": [
        "CREATE TEMP TABLE copy AS SELECT * FROM audit_entry LIMIT 1",
        "UPDATE copy SET id = 'aud_0'",
        "INSERT INTO audit_entry SELECT * FROM copy",
    ],
    "cut-with-head": [
        REMOVE_ENTRY,
        REMOVE_LINK,
        "UPDATE audit_head SET sequence = sequence - 1, kept = kept - 1,"
        " hash = (SELECT hash FROM audit_link ORDER BY sequence DESC LIMIT 1)",
    ],
    "begin-anew": [
        "DELETE FROM audit_entry",
        "DELETE FROM audit_link",
        "DELETE FROM audit_pending",
        "DELETE FROM audit_head",
        "DELETE FROM meta WHERE name LIKE 'audit_key/%'",
    ],
}

file, change, *entry = sys.argv[1:]
with sqlite3.connect(file) as db:
    for statement in CHANGES[change]:
        db.execute(statement, {"entry": entry[0]} if entry else {})
