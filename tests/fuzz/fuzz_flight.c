/* Any bytes as a Flight Recorder dump, pickle or JSON: refused with a sentence, or as the dumps of two ranks events
 * that can be, and a state of calls that can be: nobody is in a call that he has not entered. */
#include "../../collector/import/flight.h"
#include "import_check.h"

extern const struct import_format format_pickle, format_flight_json;

static bool read_one(struct trace *t, struct trace_input *in, const unsigned char *data, size_t n)
{
	const struct import_format *f = n > 0 && (data[0] == '{' || data[0] == '[') ? &format_flight_json : &format_pickle;
	struct bytes b = { data, n, 0 };
	char why[250] = "";
	enum import_outcome o = f->read(t, in, read_bytes, &b, why, sizeof why);

	CHECK(!t->no_memory && memchr(why, '\0', sizeof why));
	CHECK(o == IMPORT_UNKNOWN || why[0]);
	in->fine = o == IMPORT_OK;
	return in->fine;
}

static void check_state(const struct dumped *d)
{
	uint64_t n_seats = 0;

	for (uint32_t i = 0; i < d->n_lines; i++) {
		const struct dumped_line *v = &d->lines[i];

		CHECK(v->group && v->what && v->op && (!v->message || v->n_seats == 2));
		CHECK(v->first_seat == n_seats && n_seats + v->n_seats <= d->n_seats);
		n_seats += v->n_seats;
		for (uint32_t k = 0; k < v->n_seats; k++) {
			const struct dumped_seat *s = &d->seats[v->first_seat + k];

			CHECK(s->rank >= 0 && s->rank < FACT_MAX_RANKS && s->pending <= s->entered);
			CHECK(s->heard || s->pending < 0);
		}
	}
	for (uint32_t i = 1; i < d->n_missing; i++)
		CHECK(d->missing[i - 1] < d->missing[i]);
}

static void check_events(struct trace *t)
{
	for (uint32_t i = 0; i < t->n_ranks; i++) {
		struct trace_rank *r = &t->ranks[i];
		struct runs_reader *in;
		const struct event *ev;

		CHECK(r->rank >= 0 && r->rank < FACT_MAX_RANKS && trace_sort(t, r));
		in = trace_read(t, r, TRACE_HOST);
		CHECK(in);
		while ((ev = runs_next(in))) {
			CHECK(ev->kind == EVENT_COLL_BEGIN && ev->name > 0 && ev->name <= r->n_names);
			CHECK(ev->tick > 0 && ev->tick < UINT64_C(1) << 61 && !(ev->b & EVENT_COLL_SYNC_BIT));
		}
		CHECK(trace_read_end(t, in));
	}
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
	struct trace_input in[2] = { { .path = "rank_0" }, { .path = "_dump_1" } };
	struct trace t;

	trace_init(&t);
	if (read_one(&t, &in[0], data, n)) {
		(void)read_one(&t, &in[1], data, n);
		CHECK(format_pickle.join(&t, in, 2));
		check_state(&t.dumped);
		check_events(&t);
	}
	trace_fini(&t);
	return 0;
}
