-- Texts by name, as a JSON object.
ALTER TABLE environment ADD COLUMN variables TEXT NOT NULL DEFAULT '{}';
