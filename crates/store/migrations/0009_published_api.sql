-- Published APIs, their versions and the keys of their consumers; where an environment's consumers call.

ALTER TABLE environment ADD COLUMN base_url TEXT;

ALTER TABLE environment ADD COLUMN revision BIGINT NOT NULL DEFAULT 1;

ALTER TABLE environment ADD COLUMN updated_at BIGINT NOT NULL DEFAULT 0;

UPDATE environment SET updated_at = created_at;

CREATE UNIQUE INDEX environment_base_url ON environment (account_id, base_url) WHERE base_url IS NOT NULL;

CREATE TABLE published_api (
    id              TEXT   NOT NULL PRIMARY KEY,
    account_id      TEXT   NOT NULL REFERENCES account (id),
    environment_id  TEXT   NOT NULL REFERENCES environment (id),
    name            TEXT   NOT NULL,
    description     TEXT   NOT NULL,
    method          TEXT   NOT NULL,
    path            TEXT   NOT NULL,
    -- The path without the names of its parameters: equal for paths that match the same requests.
    shape           TEXT   NOT NULL,
    auth            TEXT   NOT NULL,
    oauth2          TEXT,
    validation      TEXT   NOT NULL,
    deadline_ms     BIGINT NOT NULL,
    on_timeout      TEXT   NOT NULL,
    strict_response BIGINT NOT NULL,
    cors            TEXT,
    revision        BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    deleted_at      BIGINT
);

CREATE UNIQUE INDEX published_api_name ON published_api (environment_id, name) WHERE deleted_at IS NULL;

CREATE UNIQUE INDEX published_api_route ON published_api (environment_id, method, shape) WHERE deleted_at IS NULL;

CREATE INDEX published_api_by_environment ON published_api (environment_id, id);

CREATE TABLE published_api_version (
    api_id           TEXT   NOT NULL REFERENCES published_api (id),
    number           BIGINT NOT NULL,
    status           TEXT   NOT NULL,
    flow_id          TEXT   NOT NULL REFERENCES flow (id),
    -- JSON texts as they came.
    request_schema   TEXT,
    response_schema  TEXT,
    response_mapping TEXT,
    response_status  TEXT,
    response_headers TEXT,
    sunset_at        BIGINT,
    created_at       BIGINT NOT NULL,
    deprecated_at    BIGINT,
    retired_at       BIGINT,
    PRIMARY KEY (api_id, number)
);

CREATE INDEX published_api_version_by_flow ON published_api_version (flow_id);

-- The lookup tables and adapters that the answers of an API name.
CREATE TABLE published_api_use (
    api_id      TEXT NOT NULL REFERENCES published_api (id),
    resource_id TEXT NOT NULL,
    PRIMARY KEY (api_id, resource_id)
);

CREATE INDEX published_api_use_by_resource ON published_api_use (resource_id);

CREATE TABLE consumer_key (
    id                    TEXT   NOT NULL PRIMARY KEY,
    api_id                TEXT   NOT NULL REFERENCES published_api (id),
    consumer              TEXT   NOT NULL,
    prefix                TEXT   NOT NULL,
    sha256                BLOB   NOT NULL UNIQUE,
    rate_limit_per_second BIGINT,
    daily_limit           BIGINT,
    suspended             BIGINT NOT NULL,
    rotated_from          TEXT,
    created_at            BIGINT NOT NULL,
    expires_at            BIGINT,
    revoked_at            BIGINT
);

CREATE INDEX consumer_key_by_api ON consumer_key (api_id, id);

CREATE INDEX consumer_key_expiring ON consumer_key (api_id, expires_at) WHERE expires_at IS NOT NULL AND revoked_at IS NULL;
