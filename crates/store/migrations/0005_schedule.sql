-- When the deployed flows with the trigger schedule are due, and what became of their last run.

CREATE TABLE schedule (
    id               TEXT   NOT NULL PRIMARY KEY,
    account_id       TEXT   NOT NULL REFERENCES account (id),
    environment_id   TEXT   NOT NULL REFERENCES environment (id),
    flow_id          TEXT   NOT NULL UNIQUE REFERENCES flow (id),
    cron_expression  TEXT   NOT NULL,
    timezone         TEXT   NOT NULL,
    -- What the deployed definition says; the two above may have been changed since.
    defined_cron     TEXT   NOT NULL,
    defined_timezone TEXT   NOT NULL,
    enabled          BIGINT NOT NULL,
    -- None while it is not enabled.
    next_run_at      BIGINT,
    -- Until then one control plane sees to the time that is due.
    claimed_until    BIGINT NOT NULL,
    last_run_at      BIGINT,
    last_message_id  TEXT,
    last_run_status  TEXT,
    revision         BIGINT NOT NULL,
    created_at       BIGINT NOT NULL,
    updated_at       BIGINT NOT NULL
);

CREATE INDEX schedule_by_environment ON schedule (environment_id, id);

CREATE INDEX schedule_by_next_run ON schedule (next_run_at) WHERE next_run_at IS NOT NULL;

CREATE INDEX schedule_running ON schedule (last_run_at) WHERE last_run_status = 'running';
