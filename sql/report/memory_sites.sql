-- Places in the program that hold most memory, ten a device.
SELECT rank, device, site, n_live, live_bytes, n_allocated, allocated_bytes, n_freed, freed_bytes
FROM (SELECT *, row_number() OVER (PARTITION BY rank, device ORDER BY live_bytes DESC, site) AS nth FROM memory_site WHERE n_live > 0)
WHERE nth <= 10 ORDER BY rank, device, nth LIMIT 10000;
