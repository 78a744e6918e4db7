-- Views first come first served by name; a column without a word in doc is shown all the same.
SELECT m.name AS view, i.name AS "column", coalesce(d.unit, '') AS unit, coalesce(d.meaning, '') AS meaning
FROM sqlite_master m JOIN pragma_table_info(m.name) i
LEFT JOIN doc d ON d.view = m.name AND d."column" = i.name
WHERE m.type = 'view' ORDER BY m.name, i.cid;
