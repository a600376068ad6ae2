-- JavaScript adapters.

CREATE TABLE adapter (
    id             TEXT   NOT NULL PRIMARY KEY,
    account_id     TEXT   NOT NULL REFERENCES account (id),
    environment_id TEXT   NOT NULL REFERENCES environment (id),
    name           TEXT   NOT NULL,
    description    TEXT   NOT NULL,
    kind           TEXT   NOT NULL,
    code           TEXT   NOT NULL,
    version        BIGINT NOT NULL,
    created_at     BIGINT NOT NULL,
    updated_at     BIGINT NOT NULL,
    deleted_at     BIGINT
);

CREATE UNIQUE INDEX adapter_name ON adapter (environment_id, name) WHERE deleted_at IS NULL;

CREATE INDEX adapter_by_environment ON adapter (environment_id, id);
