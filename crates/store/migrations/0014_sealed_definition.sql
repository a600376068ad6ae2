-- A definition with a secret that is written out is kept sealed; yaml_config has the mask in the secret's place.

ALTER TABLE flow ADD COLUMN sealed_config BLOB;

ALTER TABLE flow_version ADD COLUMN sealed_config BLOB;
