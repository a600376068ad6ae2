-- People of an account. An invited one has an invitation, an active one the issuer and the subject
-- of its tokens.
CREATE TABLE member (
    id                TEXT   NOT NULL PRIMARY KEY,
    account_id        TEXT   NOT NULL REFERENCES account (id),
    email             TEXT,
    normalized_email  TEXT,
    name              TEXT   NOT NULL,
    role              TEXT   NOT NULL,
    issuer            TEXT,
    subject           TEXT,
    invite_sha256     BLOB,
    invite_expires_at BIGINT,
    invited_by_type   TEXT,
    invited_by_id     TEXT,
    invited_by_name   TEXT,
    invited_at        BIGINT,
    joined_at         BIGINT,
    last_seen_at      BIGINT,
    revision          BIGINT NOT NULL
);

CREATE UNIQUE INDEX member_email ON member (account_id, normalized_email);

CREATE UNIQUE INDEX member_identity ON member (account_id, issuer, subject);

CREATE UNIQUE INDEX member_invite ON member (invite_sha256);
