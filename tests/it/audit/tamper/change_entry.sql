UPDATE audit_entry SET actor_name = 'nobody' WHERE id = 'ID';
