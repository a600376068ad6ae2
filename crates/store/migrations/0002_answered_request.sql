-- Requests that came with an Idempotency-Key, and how they were answered.

CREATE TABLE answered_request (
    account_id TEXT   NOT NULL REFERENCES account (id),
    name       TEXT   NOT NULL,
    request    BLOB   NOT NULL,
    answer     BLOB,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (account_id, name)
);

CREATE INDEX answered_request_by_age ON answered_request (created_at);
