DELETE FROM audit_entry;
DELETE FROM audit_link;
DELETE FROM audit_pending;
DELETE FROM audit_head;
DELETE FROM meta WHERE name LIKE 'audit_key/%';
