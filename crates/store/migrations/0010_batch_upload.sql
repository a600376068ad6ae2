-- Records of a batch job come before the job does: it is there when the last of them has come.

CREATE TABLE batch_upload (
    job_id     TEXT   NOT NULL PRIMARY KEY,
    -- When the last of its records came so far.
    touched_at BIGINT NOT NULL
);

-- The same table as before, and no reference to a job.
CREATE TABLE batch_record_of_upload (
    job_id        TEXT   NOT NULL,
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

INSERT INTO batch_record_of_upload
    SELECT job_id, position, state, payload, message_id, error_kind, error_message, error_field FROM batch_record;

DROP TABLE batch_record;

ALTER TABLE batch_record_of_upload RENAME TO batch_record;

CREATE INDEX batch_record_by_state ON batch_record (job_id, state, position);

CREATE INDEX batch_job_by_end ON batch_job (finished_at);
