-- What the spine needs. TEXT, BIGINT, DOUBLE and BLOB only; times in milliseconds since 1970, UTC.

CREATE TABLE meta (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE account (
    id         TEXT   NOT NULL PRIMARY KEY,
    name       TEXT   NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE environment (
    id         TEXT   NOT NULL PRIMARY KEY,
    account_id TEXT   NOT NULL REFERENCES account (id),
    name       TEXT   NOT NULL,
    is_default BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (account_id, name)
);

CREATE TABLE api_key (
    id             TEXT   NOT NULL PRIMARY KEY,
    account_id     TEXT   NOT NULL REFERENCES account (id),
    name           TEXT   NOT NULL,
    role           TEXT   NOT NULL,
    environment_id TEXT   REFERENCES environment (id),
    sha256         BLOB   NOT NULL UNIQUE,
    prefix         TEXT   NOT NULL,
    created_at     BIGINT NOT NULL,
    expires_at     BIGINT,
    last_used_at   BIGINT,
    deleted_at     BIGINT
);

CREATE INDEX api_key_by_account ON api_key (account_id, id);

CREATE TABLE flow (
    id             TEXT   NOT NULL PRIMARY KEY,
    account_id     TEXT   NOT NULL REFERENCES account (id),
    environment_id TEXT   NOT NULL REFERENCES environment (id),
    name           TEXT   NOT NULL,
    description    TEXT   NOT NULL,
    status         TEXT   NOT NULL,
    version        BIGINT NOT NULL,
    trigger_kind   TEXT   NOT NULL,
    yaml_config    TEXT   NOT NULL,
    change_summary TEXT   NOT NULL,
    webhook_token  BLOB,
    revision       BIGINT NOT NULL,
    created_at     BIGINT NOT NULL,
    updated_at     BIGINT NOT NULL,
    deleted_at     BIGINT
);

CREATE UNIQUE INDEX flow_name ON flow (environment_id, name) WHERE deleted_at IS NULL;

CREATE INDEX flow_by_environment ON flow (environment_id, id);

CREATE TABLE former_webhook_token (
    flow_id    TEXT   NOT NULL REFERENCES flow (id),
    sha256     BLOB   NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (flow_id, sha256)
);

CREATE TABLE flow_version (
    flow_id        TEXT   NOT NULL REFERENCES flow (id),
    version        BIGINT NOT NULL,
    yaml_config    TEXT   NOT NULL,
    change_summary TEXT   NOT NULL,
    created_at     BIGINT NOT NULL,
    created_by     TEXT   NOT NULL,
    PRIMARY KEY (flow_id, version)
);

CREATE TABLE flow_use (
    flow_id     TEXT NOT NULL REFERENCES flow (id),
    resource_id TEXT NOT NULL,
    PRIMARY KEY (flow_id, resource_id)
);

CREATE INDEX flow_use_by_resource ON flow_use (resource_id);

CREATE TABLE lookup_table (
    id             TEXT   NOT NULL PRIMARY KEY,
    account_id     TEXT   NOT NULL REFERENCES account (id),
    environment_id TEXT   NOT NULL REFERENCES environment (id),
    name           TEXT   NOT NULL,
    description    TEXT   NOT NULL,
    version        BIGINT NOT NULL,
    entries_count  BIGINT NOT NULL,
    created_at     BIGINT NOT NULL,
    updated_at     BIGINT NOT NULL,
    deleted_at     BIGINT
);

CREATE UNIQUE INDEX lookup_table_name ON lookup_table (environment_id, name) WHERE deleted_at IS NULL;

CREATE INDEX lookup_table_by_environment ON lookup_table (environment_id, id);

CREATE TABLE lookup_entry (
    table_id TEXT NOT NULL REFERENCES lookup_table (id),
    name     TEXT NOT NULL,
    value    TEXT NOT NULL,
    PRIMARY KEY (table_id, name)
);

CREATE TABLE connector_instance (
    id             TEXT   NOT NULL PRIMARY KEY,
    account_id     TEXT   NOT NULL REFERENCES account (id),
    environment_id TEXT   NOT NULL REFERENCES environment (id),
    catalog_id     TEXT   NOT NULL,
    name           TEXT   NOT NULL,
    display_name   TEXT   NOT NULL,
    config         BLOB   NOT NULL,
    revision       BIGINT NOT NULL,
    created_at     BIGINT NOT NULL,
    updated_at     BIGINT NOT NULL,
    deleted_at     BIGINT
);

CREATE UNIQUE INDEX connector_instance_name ON connector_instance (environment_id, name) WHERE deleted_at IS NULL;

CREATE INDEX connector_instance_by_environment ON connector_instance (environment_id, id);

CREATE TABLE node (
    id            TEXT   NOT NULL PRIMARY KEY,
    address       TEXT   NOT NULL,
    build         TEXT   NOT NULL,
    environments  TEXT   NOT NULL,
    epoch         TEXT   NOT NULL,
    generation    BIGINT NOT NULL,
    set_hash      TEXT   NOT NULL,
    first_seen_at BIGINT NOT NULL,
    last_seen_at  BIGINT NOT NULL
);

CREATE TABLE published (
    environment_id TEXT   NOT NULL REFERENCES environment (id),
    resource_id    TEXT   NOT NULL,
    hash           BLOB   NOT NULL,
    sealed         BLOB   NOT NULL,
    generation     BIGINT NOT NULL,
    removed        BIGINT NOT NULL,
    PRIMARY KEY (environment_id, resource_id)
);

CREATE INDEX published_by_generation ON published (environment_id, generation);
