-- Resources that people search by words. The words are split by this program, and stand in an index of the database.
-- The view has the texts that are searched: definitions with their secrets masked, and no configs of instances.
CREATE VIEW searchable AS
    SELECT id, environment_id, 'flow' AS kind, name, description, yaml_config AS content
        FROM flow WHERE deleted_at IS NULL
    UNION ALL SELECT id, environment_id, 'connector' AS kind, name, display_name AS description, catalog_id AS content
        FROM connector_instance WHERE deleted_at IS NULL
    UNION ALL SELECT id, environment_id, 'adapter' AS kind, name, description, code AS content
        FROM adapter WHERE deleted_at IS NULL
    UNION ALL SELECT id, environment_id, 'published_api' AS kind, name, description, path AS content
        FROM published_api WHERE deleted_at IS NULL
    UNION ALL SELECT id, environment_id, 'lookup_table' AS kind, name, description, '' AS content
        FROM lookup_table WHERE deleted_at IS NULL;

CREATE TABLE search_entry (
    -- Row of the index.
    number         INTEGER PRIMARY KEY,
    id             TEXT    NOT NULL UNIQUE,
    environment_id TEXT    NOT NULL REFERENCES environment (id),
    kind           TEXT    NOT NULL,
    name           TEXT    NOT NULL,
    description    TEXT    NOT NULL,
    -- Hash of all texts: an entry whose texts are the same is left alone.
    hash           BLOB    NOT NULL
);

CREATE INDEX search_entry_by_environment ON search_entry (environment_id, number);

CREATE WORD INDEX search_index;
