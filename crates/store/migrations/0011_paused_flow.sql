-- Which flows of an environment are paused is asked with every list of messages.
CREATE INDEX flow_paused ON flow (environment_id) WHERE status = 'paused';
