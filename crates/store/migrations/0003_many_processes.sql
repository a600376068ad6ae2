-- Several control planes on one database: which node hangs on which, and what is done once for all of them.

-- The boot of the control plane that the node is connected to; empty when to none.
ALTER TABLE node ADD COLUMN control_plane TEXT NOT NULL DEFAULT '';
ALTER TABLE node ADD COLUMN boot_id TEXT NOT NULL DEFAULT '';
ALTER TABLE node ADD COLUMN status TEXT NOT NULL DEFAULT 'disconnected';
ALTER TABLE node ADD COLUMN in_flight BIGINT NOT NULL DEFAULT 0;

-- What a node runs of an environment that it serves. `rejected` is a JSON list of resource and message.
CREATE TABLE node_environment (
    node_id        TEXT   NOT NULL,
    environment_id TEXT   NOT NULL,
    epoch          TEXT   NOT NULL,
    generation     BIGINT NOT NULL,
    set_hash       TEXT   NOT NULL,
    rejected       TEXT   NOT NULL,
    PRIMARY KEY (node_id, environment_id)
);

-- The latest due time for which a periodic task was taken up by somebody.
CREATE TABLE periodic_task (
    name      TEXT   NOT NULL PRIMARY KEY,
    taken_for BIGINT NOT NULL
);
