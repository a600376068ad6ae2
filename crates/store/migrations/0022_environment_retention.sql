-- Days that ended messages are kept; those of the service where there is none.
ALTER TABLE environment ADD COLUMN retention_days BIGINT;
