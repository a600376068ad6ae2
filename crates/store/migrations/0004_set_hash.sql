-- Which set an environment's nodes are to run: the hash over what is published, and the generation that it is of. A build
-- that does not know them leaves them behind, and the next one that does makes them anew.

ALTER TABLE environment ADD COLUMN set_hash TEXT NOT NULL DEFAULT '';
ALTER TABLE environment ADD COLUMN set_hash_of BIGINT NOT NULL DEFAULT -1;
