DELETE FROM audit_entry WHERE id = 'ID';
