CREATE TEMP TABLE another AS SELECT * FROM audit_entry LIMIT 1;
UPDATE another SET id = 'aud_0';
INSERT INTO audit_entry SELECT * FROM another;
