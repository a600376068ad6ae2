-- Names and descriptions of flows as lists look for a text in them: in the common case of letters.
-- Flows have wide rows, and a search goes through all of an environment. Existing flows get their
-- rows from this program.
CREATE TABLE flow_text (
    environment_id TEXT NOT NULL REFERENCES environment (id),
    flow_id        TEXT NOT NULL REFERENCES flow (id),
    status         TEXT NOT NULL,
    name           TEXT NOT NULL,
    description    TEXT NOT NULL,
    PRIMARY KEY (environment_id, flow_id)
) WITHOUT ROWID;

-- Lists count and skip flows by these indexes alone.
CREATE INDEX flow_live ON flow (environment_id, id) WHERE deleted_at IS NULL;
CREATE INDEX flow_live_by_status ON flow (environment_id, status, id) WHERE deleted_at IS NULL;
