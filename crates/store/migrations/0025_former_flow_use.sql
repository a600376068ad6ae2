-- Resources that a flow has used and no longer uses. Messages that were accepted under
-- `last_version` or an earlier one may wait, and need them.
CREATE TABLE former_flow_use (
    flow_id      TEXT   NOT NULL REFERENCES flow (id),
    resource_id  TEXT   NOT NULL,
    last_version BIGINT NOT NULL,
    PRIMARY KEY (flow_id, resource_id)
);

CREATE INDEX former_flow_use_by_resource ON former_flow_use (resource_id);
