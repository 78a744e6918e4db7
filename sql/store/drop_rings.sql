-- A late chunk filled a hole: the ranges behind it are part of this one now.
DELETE FROM raw_ring WHERE process_id = :process_id AND ring = :ring AND lo > :lo AND hi <= :hi;
