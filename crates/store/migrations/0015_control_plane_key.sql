-- Id of the master key that a control plane seals under; empty for builds that told none.
ALTER TABLE control_plane ADD COLUMN key_id TEXT NOT NULL DEFAULT '';
