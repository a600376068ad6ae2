-- OAuth2 of connector instances, their health, and the schemas of what their endpoints answer.

-- A person was sent to the provider and is not back yet. The row is the one use that there is of its state.
CREATE TABLE oauth_start (
    state_sha256   BLOB   NOT NULL PRIMARY KEY,
    account_id     TEXT   NOT NULL REFERENCES account (id),
    environment_id TEXT   NOT NULL REFERENCES environment (id),
    instance_id    TEXT   NOT NULL REFERENCES connector_instance (id),
    redirect_uri   TEXT   NOT NULL,
    verifier       BLOB   NOT NULL,
    expires_at     BIGINT NOT NULL
);

CREATE INDEX oauth_start_by_age ON oauth_start (expires_at);

-- What an OAuth2 client holds. tokens is sealed, and absent until there are some. refresh_at is absent when there is
-- nothing to wait for, as after a refusal, whose reason is in refused. A lease is held by the process that asks for tokens.
CREATE TABLE oauth_token (
    instance_id    TEXT   NOT NULL PRIMARY KEY REFERENCES connector_instance (id),
    environment_id TEXT   NOT NULL REFERENCES environment (id),
    tokens         BLOB,
    expires_at     BIGINT,
    refresh_at     BIGINT,
    failures       BIGINT NOT NULL,
    refused        TEXT   NOT NULL,
    lease_holder   TEXT   NOT NULL,
    lease_until    BIGINT NOT NULL,
    updated_at     BIGINT NOT NULL
);

CREATE INDEX oauth_token_by_refresh ON oauth_token (refresh_at);

-- How an instance does, and since when.
CREATE TABLE connector_health (
    instance_id TEXT   NOT NULL PRIMARY KEY REFERENCES connector_instance (id),
    status      TEXT   NOT NULL,
    reason      TEXT   NOT NULL,
    since       BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL
);

-- Every change of it.
CREATE TABLE connector_health_change (
    id          TEXT   NOT NULL PRIMARY KEY,
    instance_id TEXT   NOT NULL REFERENCES connector_instance (id),
    previous    TEXT   NOT NULL,
    status      TEXT   NOT NULL,
    reason      TEXT   NOT NULL,
    at          BIGINT NOT NULL
);

CREATE INDEX connector_health_change_by_instance ON connector_health_change (instance_id, id);

-- What an endpoint answers, told from what was received: as accepted by the last check, and as seen since.
CREATE TABLE endpoint_schema (
    instance_id   TEXT   NOT NULL REFERENCES connector_instance (id),
    endpoint      TEXT   NOT NULL,
    accepted      TEXT,
    seen          TEXT   NOT NULL,
    samples       BIGINT NOT NULL,
    first_seen_at BIGINT NOT NULL,
    last_seen_at  BIGINT NOT NULL,
    checked_at    BIGINT,
    PRIMARY KEY (instance_id, endpoint)
);
