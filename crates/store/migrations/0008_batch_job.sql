-- Batch jobs, and their records until and after each has become a message.

CREATE TABLE batch_job (
    id             TEXT   NOT NULL PRIMARY KEY,
    account_id     TEXT   NOT NULL REFERENCES account (id),
    environment_id TEXT   NOT NULL REFERENCES environment (id),
    flow_id        TEXT   NOT NULL REFERENCES flow (id),
    status         TEXT   NOT NULL,
    total          BIGINT NOT NULL,
    concurrency    BIGINT NOT NULL,
    succeeded      BIGINT NOT NULL,
    failed         BIGINT NOT NULL,
    retry_of       TEXT,
    created_at     BIGINT NOT NULL,
    started_at     BIGINT,
    -- None until the last of its records that began has ended.
    finished_at    BIGINT
);

CREATE INDEX batch_job_by_environment ON batch_job (environment_id, id);

CREATE INDEX batch_job_unfinished ON batch_job (id) WHERE finished_at IS NULL;

CREATE TABLE batch_record (
    job_id        TEXT   NOT NULL REFERENCES batch_job (id),
    position      BIGINT NOT NULL,
    -- pending, started, succeeded or failed
    state         TEXT   NOT NULL,
    -- Empty once it has succeeded.
    payload       TEXT   NOT NULL,
    message_id    TEXT,
    error_kind    TEXT,
    error_message TEXT,
    error_field   TEXT,
    PRIMARY KEY (job_id, position)
);

CREATE INDEX batch_record_by_state ON batch_record (job_id, state, position);
