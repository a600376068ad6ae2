-- The audit log. Entries are inserted and never updated. Those that wait for their place in the
-- chain are in audit_pending; a link is that place.
CREATE TABLE audit_entry (
    id             TEXT   NOT NULL PRIMARY KEY,
    account_id     TEXT   NOT NULL REFERENCES account (id),
    at             BIGINT NOT NULL,
    action         TEXT   NOT NULL,
    entity_type    TEXT   NOT NULL,
    entity_id      TEXT,
    entity_name    TEXT,
    environment_id TEXT,
    actor_type     TEXT   NOT NULL,
    actor_id       TEXT   NOT NULL,
    actor_name     TEXT   NOT NULL,
    actor_email    TEXT,
    actor_role     TEXT   NOT NULL,
    via            TEXT   NOT NULL,
    status         TEXT   NOT NULL,
    state_before   TEXT,
    state_after    TEXT,
    request_id     TEXT,
    address        TEXT,
    calls          BIGINT NOT NULL
);

CREATE INDEX audit_by_account ON audit_entry (account_id, id);
CREATE INDEX audit_by_time ON audit_entry (account_id, at);
CREATE INDEX audit_by_action ON audit_entry (account_id, action, id);
CREATE INDEX audit_by_type ON audit_entry (account_id, entity_type, id);
CREATE INDEX audit_by_entity ON audit_entry (account_id, entity_id, id);
CREATE INDEX audit_by_actor ON audit_entry (account_id, actor_id, id);
CREATE INDEX audit_by_environment ON audit_entry (account_id, environment_id, id);
CREATE INDEX audit_by_status ON audit_entry (account_id, status, id);
CREATE INDEX audit_by_via ON audit_entry (account_id, via, id);
CREATE INDEX audit_by_request ON audit_entry (account_id, request_id);

CREATE TABLE audit_pending (
    entry_id   TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL
);

-- Sequences begin at 1. A hash covers the entry, its sequence and the hash before it.
CREATE TABLE audit_link (
    account_id TEXT   NOT NULL,
    sequence   BIGINT NOT NULL,
    entry_id   TEXT   NOT NULL,
    hash       BLOB   NOT NULL,
    PRIMARY KEY (account_id, sequence)
);

CREATE UNIQUE INDEX audit_link_by_entry ON audit_link (entry_id);

-- The last link, and the last one that retention has dropped, each with its authentication code.
CREATE TABLE audit_head (
    account_id    TEXT   NOT NULL PRIMARY KEY,
    sequence      BIGINT NOT NULL,
    hash          BLOB   NOT NULL,
    kept          BIGINT NOT NULL,
    code          BLOB   NOT NULL,
    anchor        BIGINT NOT NULL,
    anchor_hash   BLOB   NOT NULL,
    anchor_code   BLOB   NOT NULL
);

-- Makers of API keys; keys of earlier builds have none.
ALTER TABLE api_key ADD COLUMN created_by_type TEXT;
ALTER TABLE api_key ADD COLUMN created_by_id TEXT;
ALTER TABLE api_key ADD COLUMN created_by_name TEXT;
