SELECT class, severity, count(*) FROM finding GROUP BY class, severity ORDER BY class, severity
