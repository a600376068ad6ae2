-- Callers that have deployed versions, beside their name; versions of earlier builds have none.
ALTER TABLE flow_version ADD COLUMN created_by_type TEXT;
ALTER TABLE flow_version ADD COLUMN created_by_id TEXT;
