-- A step that is told again replaces all that was said of it.
DELETE FROM raw_blame WHERE step = :step;
