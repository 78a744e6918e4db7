/* sink_perfetto.c - Perfetto's own format: a stream of packets, encoded by protobuf-c.
 *
 * One sequence. Names, categories and names of arguments are told once and then
 * numbered. Times are absolute, on the clock that Perfetto takes when none is named; a
 * snapshot says that the wall clock shows the same, so that dates are right.
 */
#include "interns.h"
#include "sink.h"

#include "perfetto.pb-c.h"

#include <stdlib.h>
#include <string.h>

#define SEQUENCE 1
#define NEEDS_STATE 2 /* SEQ_NEEDS_INCREMENTAL_STATE */
#define STATE_CLEARED 1
#define CLOCK_REALTIME_ID 1
#define CLOCK_BOOTTIME_ID 6
#define ORDER_EXPLICIT 3
#define MAX_NAMES 65536 /* names beyond are written out each time */
#define MAX_NEWS (SINK_MAX_ARGS + 2)

enum { NAMES, CATEGORIES, ARGS, N_TABLES };

struct perfetto {
	struct sink sink;
	struct interns tables[N_TABLES];
	Perfetto__Protos__InternedData news; /* of the packet that is being made */
	Perfetto__Protos__Interned news_of[N_TABLES][MAX_NEWS], *news_at[N_TABLES][MAX_NEWS];
	Perfetto__Protos__DebugAnnotation args[SINK_MAX_ARGS], *args_at[SINK_MAX_ARGS];
	unsigned char *buf; /* owned */
	size_t n_buf;
	bool begun;
};

static void put(struct perfetto *p, Perfetto__Protos__TracePacket *packet)
{
	Perfetto__Protos__Trace trace = PERFETTO__PROTOS__TRACE__INIT;
	size_t n;

	packet->has_trusted_packet_sequence_id = true;
	packet->trusted_packet_sequence_id = SEQUENCE;
	if (!p->begun) {
		packet->has_sequence_flags = true;
		packet->sequence_flags = STATE_CLEARED;
		packet->has_first_packet_on_sequence = true;
		packet->first_packet_on_sequence = true;
		p->begun = true;
	}
	trace.n_packet = 1;
	trace.packet = &packet;
	n = perfetto__protos__trace__get_packed_size(&trace);
	if (n > p->n_buf) {
		unsigned char *grown = realloc(p->buf, 2 * n);

		if (!grown) {
			p->sink.failed = true;
			return;
		}
		p->buf = grown;
		p->n_buf = 2 * n;
	}
	perfetto__protos__trace__pack(&trace, p->buf);
	fwrite(p->buf, 1, n, p->sink.f);
}

/* The number of a text; told with this packet when it is new. 0 = it has none. */
static uint64_t number(struct perfetto *p, int table, const char *text)
{
	size_t *n[N_TABLES] = { &p->news.n_event_names, &p->news.n_event_categories, &p->news.n_debug_annotation_names };
	size_t i = *n[table];
	bool is_new;
	uint32_t iid = i < MAX_NEWS ? interns_number(&p->tables[table], text, &is_new) : 0;

	if (iid && is_new) {
		p->news_of[table][i].iid = iid;
		p->news_of[table][i].name = (char *)text;
		*n[table] = i + 1;
	}
	return iid;
}

static void put_event(struct perfetto *p, const struct sink_event *ev, Perfetto__Protos__TrackEvent__Type type)
{
	Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	Perfetto__Protos__TrackEvent e = PERFETTO__PROTOS__TRACK_EVENT__INIT;
	char clean[512], texts[SINK_MAX_ARGS][2048];
	uint64_t category;

	p->news.n_event_names = p->news.n_event_categories = p->news.n_debug_annotation_names = 0;
	packet.has_timestamp = true;
	packet.timestamp = (uint64_t)ev->at_ns;
	packet.track_event = &e;
	packet.has_sequence_flags = true;
	packet.sequence_flags = NEEDS_STATE;
	e.has_type = true;
	e.type = type;
	e.has_track_uuid = true;
	e.track_uuid = ev->track;
	if (ev->name) {
		const char *name = sink_clean(ev->name, clean, sizeof clean);

		e.name_iid = number(p, NAMES, name);
		e.has_name_iid = e.name_iid != 0;
		if (!e.has_name_iid)
			e.name = (char *)name;
	}
	if (ev->cat) {
		category = number(p, CATEGORIES, ev->cat);
		e.category_iids = &category;
		e.n_category_iids = category != 0;
	}
	for (size_t i = 0; i < ev->n_args && i < SINK_MAX_ARGS; i++) {
		const struct sink_arg *a = &ev->args[i];
		Perfetto__Protos__DebugAnnotation *d = &p->args[i];

		perfetto__protos__debug_annotation__init(d);
		d->has_name_iid = true;
		d->name_iid = number(p, ARGS, a->name);
		d->has_int_value = a->type == SINK_INT;
		d->int_value = a->integer;
		d->has_bool_value = a->type == SINK_BOOL;
		d->bool_value = a->integer != 0;
		d->has_double_value = a->type == SINK_REAL;
		d->double_value = a->real;
		if (a->type == SINK_TEXT)
			d->string_value = (char *)sink_clean(a->text, texts[i], sizeof texts[i]);
		p->args_at[i] = d;
		e.n_debug_annotations = i + 1;
	}
	e.debug_annotations = p->args_at;
	e.flow_ids = (uint64_t *)ev->out;
	e.n_flow_ids = ev->n_out;
	e.terminating_flow_ids = (uint64_t *)ev->in;
	e.n_terminating_flow_ids = ev->n_in;
	if (p->news.n_event_names + p->news.n_event_categories + p->news.n_debug_annotation_names > 0)
		packet.interned_data = &p->news;
	put(p, &packet);
}

static void on_begin(struct sink *s, const struct sink_event *ev)
{
	put_event((struct perfetto *)s, ev, PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN);
}

static void on_end(struct sink *s, const struct sink_event *ev)
{
	put_event((struct perfetto *)s, ev, PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_END);
}

static void on_instant(struct sink *s, const struct sink_event *ev)
{
	put_event((struct perfetto *)s, ev, PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_INSTANT);
}

static void on_reading(struct sink *s, uint32_t track, int64_t at_ns, double value)
{
	Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	Perfetto__Protos__TrackEvent e = PERFETTO__PROTOS__TRACK_EVENT__INIT;

	packet.has_timestamp = true;
	packet.timestamp = (uint64_t)at_ns;
	packet.track_event = &e;
	e.has_type = true;
	e.type = PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_COUNTER;
	e.has_track_uuid = true;
	e.track_uuid = track;
	e.has_double_counter_value = true;
	e.double_counter_value = value;
	put((struct perfetto *)s, &packet);
}

static void on_track(struct sink *s, const struct sink_track *t)
{
	Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	Perfetto__Protos__TrackDescriptor d = PERFETTO__PROTOS__TRACK_DESCRIPTOR__INIT;
	Perfetto__Protos__ProcessDescriptor process = PERFETTO__PROTOS__PROCESS_DESCRIPTOR__INIT;
	Perfetto__Protos__CounterDescriptor counter = PERFETTO__PROTOS__COUNTER_DESCRIPTOR__INIT;
	char name[512], text[512], *label;

	packet.track_descriptor = &d;
	d.has_uuid = true;
	d.uuid = t->id;
	d.name = (char *)sink_clean(t->name, name, sizeof name);
	d.has_parent_uuid = t->parent != 0;
	d.parent_uuid = t->parent;
	d.has_sibling_order_rank = true;
	d.sibling_order_rank = t->order;
	if (t->kind == SINK_PROCESS || t->kind == SINK_GROUP) {
		d.has_child_ordering = true;
		d.child_ordering = ORDER_EXPLICIT;
	}
	if (t->kind == SINK_PROCESS) {
		process.has_pid = true;
		process.pid = t->pid;
		process.process_name = d.name;
		if (t->label) {
			label = (char *)sink_clean(t->label, text, sizeof text);
			process.process_labels = &label;
			process.n_process_labels = 1;
		}
		d.process = &process;
	}
	if (t->kind == SINK_COUNTER)
		d.counter = &counter;
	put((struct perfetto *)s, &packet);
}

static void on_about(struct sink *s, const struct sink_arg *args, size_t n)
{
	(void)s; /* said by an instant of the timeline */
	(void)args;
	(void)n;
}

static void on_free(struct sink *s)
{
	struct perfetto *p = (struct perfetto *)s;

	for (int i = 0; i < N_TABLES; i++)
		interns_fini(&p->tables[i]);
	free(p->buf);
	free(p);
}

static void put_clocks(struct perfetto *p, int64_t at_ns)
{
	Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	Perfetto__Protos__ClockSnapshot snapshot = PERFETTO__PROTOS__CLOCK_SNAPSHOT__INIT;
	Perfetto__Protos__ClockSnapshot__Clock clocks[2], *at[2] = { &clocks[0], &clocks[1] };

	for (int i = 0; i < 2; i++) {
		perfetto__protos__clock_snapshot__clock__init(&clocks[i]);
		clocks[i].has_clock_id = clocks[i].has_timestamp = true;
		clocks[i].clock_id = i ? CLOCK_REALTIME_ID : CLOCK_BOOTTIME_ID;
		clocks[i].timestamp = (uint64_t)at_ns;
	}
	snapshot.clocks = at;
	snapshot.n_clocks = 2;
	snapshot.has_primary_trace_clock = true;
	snapshot.primary_trace_clock = CLOCK_BOOTTIME_ID;
	packet.clock_snapshot = &snapshot;
	put(p, &packet);
}

struct sink *sink_perfetto(FILE *f, int64_t base_ns)
{
	static const struct sink_ops ops = { on_track, on_begin, on_end, on_instant, on_reading, on_about, on_free };
	struct perfetto *p = calloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->sink.ops = &ops;
	p->sink.f = f;
	for (int t = 0; t < N_TABLES; t++) {
		interns_init(&p->tables[t], MAX_NAMES);
		for (size_t i = 0; i < MAX_NEWS; i++) {
			perfetto__protos__interned__init(&p->news_of[t][i]);
			p->news_of[t][i].has_iid = true;
			p->news_at[t][i] = &p->news_of[t][i];
		}
	}
	perfetto__protos__interned_data__init(&p->news);
	p->news.event_names = p->news_at[NAMES];
	p->news.event_categories = p->news_at[CATEGORIES];
	p->news.debug_annotation_names = p->news_at[ARGS];
	put_clocks(p, base_ns);
	return &p->sink;
}
