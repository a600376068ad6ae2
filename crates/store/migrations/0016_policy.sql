-- Governance policies of an account. Ids of environments are joined by commas.
CREATE TABLE policy (
    id              TEXT   NOT NULL PRIMARY KEY,
    account_id      TEXT   NOT NULL REFERENCES account (id),
    name            TEXT   NOT NULL,
    description     TEXT   NOT NULL,
    severity        TEXT   NOT NULL,
    expression      TEXT   NOT NULL,
    message         TEXT   NOT NULL,
    environment_ids TEXT   NOT NULL,
    enabled         BIGINT NOT NULL,
    revision        BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL
);

CREATE UNIQUE INDEX policy_name ON policy (account_id, name);

CREATE INDEX policy_by_account ON policy (account_id, id);
