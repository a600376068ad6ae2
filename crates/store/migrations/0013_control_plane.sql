-- Control planes that live. Each keeps a lease, which ends a while after it does: what it began and did not end is free then.

CREATE TABLE control_plane (
    boot_id     TEXT   NOT NULL PRIMARY KEY,
    lease_until BIGINT NOT NULL
);

-- The boot of the control plane that runs the request; empty for builds that kept no lease.
ALTER TABLE kept_answer ADD COLUMN begun_by TEXT NOT NULL DEFAULT '';
