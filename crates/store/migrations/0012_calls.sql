-- Kept answers belong to a credential, not to an account. Those of before do not say whose they are: who repeats a call of the day
-- before the upgrade has it done again. Their table stays for control planes of the build before, which may still run.

CREATE TABLE kept_answer (
    key_id     TEXT   NOT NULL,
    name       TEXT   NOT NULL,
    request    BLOB   NOT NULL,
    answer     BLOB,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (key_id, name)
);

CREATE INDEX kept_answer_by_age ON kept_answer (created_at);

-- What calls with an idempotency key have made, written together with it.

CREATE TABLE done_call (
    call       TEXT   NOT NULL PRIMARY KEY,
    made       TEXT   NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE INDEX done_call_by_age ON done_call (created_at);
