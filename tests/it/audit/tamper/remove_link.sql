DELETE FROM audit_link WHERE entry_id = 'ID';
