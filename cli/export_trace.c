/* export_trace.c - a run as a trace: for Perfetto, as Chrome JSON, and as a table. */
#include "cli.h"
#include "export_trace.h"
#include "timeline.h"

/* Measured on jobs with and without devices: bytes of a slice with its arguments. */
#define PERFETTO_STEP_BYTES 210
#define PERFETTO_CALL_BYTES 290
#define PERFETTO_SLICE_BYTES 90
#define CHROME_STEP_BYTES 420
#define CHROME_CALL_BYTES 800
#define CHROME_SLICE_BYTES 230
#define CSV_STEP_BYTES 230
#define CSV_CALL_BYTES 380
#define CSV_SLICE_BYTES 120
#define READING_BYTES 40

static int64_t guess(const struct export *e, int64_t step_bytes, int64_t call_bytes, int64_t slice_bytes)
{
	const struct export_size *s = &e->size;
	bool has_events = export_has(e, EXPORT_HOST) || export_has(e, EXPORT_KERNELS);

	return 10000 + s->n_rank_steps * step_bytes + s->n_arrivals * call_bytes + (has_events ? s->n_events / 3 * slice_bytes : 0) +
	       (export_has(e, EXPORT_COUNTERS) ? s->n_readings * READING_BYTES : 0);
}

int64_t export_guess_perfetto(const struct export *e)
{
	return guess(e, PERFETTO_STEP_BYTES, PERFETTO_CALL_BYTES, PERFETTO_SLICE_BYTES);
}

int64_t export_guess_chrome(const struct export *e)
{
	return guess(e, CHROME_STEP_BYTES, CHROME_CALL_BYTES, CHROME_SLICE_BYTES);
}

int64_t export_guess_csv(const struct export *e)
{
	return guess(e, CSV_STEP_BYTES, CSV_CALL_BYTES, CSV_SLICE_BYTES);
}

static int write_trace(struct export *e, const struct export_format *f, struct sink *(*sink_new)(FILE *f, int64_t base_ns))
{
	int status = export_open(e, f);

	if (status != EXIT_FINE)
		return status;
	status = timeline_write(e, sink_new);
	return export_close(e, status == EXIT_FINE) ? EXIT_FINE : EXIT_UNREACHED;
}

int export_perfetto(struct export *e, const struct export_format *f)
{
	return write_trace(e, f, sink_perfetto);
}

int export_chrome(struct export *e, const struct export_format *f)
{
	return write_trace(e, f, sink_chrome);
}

int export_csv(struct export *e, const struct export_format *f)
{
	return write_trace(e, f, sink_csv);
}
