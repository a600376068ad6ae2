UPDATE audit_head
SET sequence = sequence - 1,
    kept = kept - 1,
    hash = (SELECT hash FROM audit_link ORDER BY sequence DESC LIMIT 1);
