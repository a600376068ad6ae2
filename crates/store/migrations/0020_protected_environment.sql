-- Editors do not change what a protected environment runs.
ALTER TABLE environment ADD COLUMN is_protected BIGINT NOT NULL DEFAULT 0;

-- Lowest role that may promote into the environment: editor or admin.
ALTER TABLE environment ADD COLUMN promoters TEXT NOT NULL DEFAULT 'editor';

-- The row of a deleted environment stays for what refers to it, with its id as its name.
ALTER TABLE environment ADD COLUMN deleted_at BIGINT;
