-- A file with tables but without our application_id belongs to someone else.
SELECT count(*) FROM sqlite_master;
