#include "report_nccl.h"
#include "rows.h"
#include "table.h"
#include "term.h"

#include <inttypes.h>
#include <string.h>

#include "sql.h"

#define RANKS_SHOWN 24
#define ORDERS_SHOWN 6
#define LINES_SHOWN 12
#define TRANSFERS_SHOWN 12

json_t *report_nccl_build(struct db *d)
{
	const struct {
		const char *key, *sql;
	} parts[] = {
		{ "communicators", sql_report_nccl_comms },	{ "rings", sql_report_nccl_rings },
		{ "transports", sql_report_nccl_transports },	{ "cards", sql_report_nccl_cards },
		{ "lines", sql_report_nccl_lines },		{ "transfers", sql_report_nccl_transfers },
		{ "topologies", sql_report_nccl_topologies },	{ "graphs", sql_report_nccl_graphs },
	};
	json_t *v = json_object(), *timed = rows_one(d, sql_report_nccl_timed);
	bool any = json_integer_value(json_object_get(timed, "calls")) > 0, fine = v && timed;

	for (size_t i = 0; fine && i < sizeof parts / sizeof *parts; i++) {
		json_t *rows = rows_all(d, parts[i].sql);

		any |= json_array_size(rows) > 0;
		fine = rows && json_object_set_new(v, parts[i].key, rows) == 0;
	}
	fine = fine && json_object_set(v, "timed", timed) == 0;
	json_decref(timed);
	if (fine && any)
		return v;
	json_decref(v);
	return fine ? json_null() : NULL;
}

static int64_t count(const json_t *v, const char *key)
{
	return json_integer_value(json_object_get(v, key));
}

/* "1 host", "2 hosts" */
static void put_count(FILE *f, int64_t n, const char *what)
{
	fprintf(f, "%" PRId64 " %s%s", n, what, n == 1 ? "" : "s");
}

static bool is_known(const json_t *v, const char *key)
{
	return json_is_integer(json_object_get(v, key));
}

static bool is_of(const json_t *v, const char *key, const char *text)
{
	return strcmp(rows_text(v, key), text) == 0;
}

/* "0 1 2 3 …" */
static void put_ranks(FILE *f, const json_t *ranks)
{
	size_t n = json_array_size(ranks), shown = n > RANKS_SHOWN ? RANKS_SHOWN : n;

	for (size_t i = 0; i < shown; i++)
		fprintf(f, "%s%" PRId64, i ? " " : "", (int64_t)json_integer_value(json_array_get(ranks, i)));
	if (shown < n)
		fprintf(f, " … (%zu ranks)", n);
}

static void put_rings(FILE *f, const json_t *nccl, const char *comm)
{
	size_t i, n = 0;
	json_t *r;

	json_array_foreach(json_object_get(nccl, "rings"), i, r)
	{
		size_t channels = json_array_size(json_object_get(r, "channels"));

		if (!is_of(r, "comm", comm) || n++ >= ORDERS_SHOWN)
			continue;
		fprintf(f, "    %zu channel%s: ", channels, channels == 1 ? "" : "s");
		put_ranks(f, json_object_get(r, "ranks"));
		putc('\n', f);
	}
	if (n > ORDERS_SHOWN)
		fprintf(f, "    … and %zu more orders: SELECT * FROM nccl_ring\n", n - ORDERS_SHOWN);
}

static void put_transports(FILE *f, const json_t *nccl, const char *comm)
{
	const char *between = "  Connections: ";
	size_t i;
	json_t *r;

	json_array_foreach(json_object_get(nccl, "transports"), i, r)
	{
		const json_t *gdr = json_object_get(r, "gdr");

		if (!is_of(r, "comm", comm))
			continue;
		fputs(between, f);
		fprintf(f, "%" PRId64 " ", count(r, "connections"));
		term_put(f, rows_text(r, "transport"));
		if (json_is_boolean(gdr))
			fputs(json_is_true(gdr) ? " (GPUDirect)" : " (without GPUDirect)", f);
		between = ", ";
	}
	if (between[0] == ',')
		fputs(".\n", f);
}

static void put_calls(FILE *f, const json_t *c)
{
	if (!is_known(c, "calls"))
		return;
	fputs("  ", f);
	put_count(f, count(c, "calls"), "call");
	fputs(" of ", f);
	put_count(f, count(c, "ranks_with_calls"), "rank");
	if (is_known(c, "first_odd_call"))
		fprintf(f, ": call %" PRId64 " is not the same on all of them", count(c, "first_odd_call"));
	else if (is_known(c, "fewest_calls_rank"))
		fprintf(f, ", the same on all as far as they go; rank %" PRId64 " has the fewest",
			count(c, "fewest_calls_rank"));
	else if (count(c, "ranks_with_calls") > 1)
		fputs(", the same on all", f);
	fputs(".\n", f);
}

static void put_comm(FILE *f, const json_t *nccl, const json_t *c)
{
	const char *comm = rows_text(c, "comm");

	fputs("Communicator ", f);
	term_put(f, comm);
	fprintf(f, ": %" PRId64 " of %" PRId64 " ranks told, %" PRId64 " set up", count(c, "ranks_seen"),
		count(c, "ranks"), count(c, "ranks_set_up"));
	if (is_known(c, "channels")) {
		fputs(", ", f);
		put_count(f, count(c, "channels"), "channel");
	}
	fputs(".\n", f);
	if (json_is_true(json_object_get(c, "ambiguous")))
		fputs("  There are several of this size, and the log does not tell them apart.\n", f);
	else if (json_is_true(json_object_get(c, "rings_complete")))
		fputs("  Rings complete; each sends to the next, the last to the first:\n", f);
	else
		fprintf(f, "  Rings not complete: %" PRId64 " known, %" PRId64 " with too little said, %" PRId64
			   " contradictory.\n",
			count(c, "rings"), count(c, "rings_open"), count(c, "rings_contradict"));
	put_rings(f, nccl, comm);
	put_transports(f, nccl, comm);
	put_calls(f, c);
}

/* Versions, networks, settings and warnings; the first few. */
static void put_lines(FILE *f, const json_t *lines)
{
	size_t i;
	json_t *r;

	json_array_foreach((json_t *)lines, i, r)
	{
		if (i == LINES_SHOWN) {
			fprintf(f, "… and more: SELECT * FROM nccl_line\n");
			return;
		}
		term_put(f, rows_text(r, "kind"));
		putc(' ', f);
		if (json_is_string(json_object_get(r, "key"))) {
			term_put(f, rows_text(r, "key"));
			putc(' ', f);
		}
		term_put(f, rows_text(r, "text"));
		if (count(r, "processes") > 0) {
			fputs(" (", f);
			fprintf(f, "%" PRId64 " process%s", count(r, "processes"),
				count(r, "processes") == 1 ? "" : "es");
			putc(')', f);
		}
		putc('\n', f);
	}
}

static void put_cards(FILE *f, const json_t *cards)
{
	const char *network = "";
	size_t i;
	json_t *r;

	json_array_foreach((json_t *)cards, i, r)
	{
		if (strcmp(network, rows_text(r, "network")) != 0) {
			fputs(i ? ".\nCards of " : "Cards of ", f);
			network = rows_text(r, "network");
			term_put(f, network);
			fputs(": ", f);
		} else {
			fputs(", ", f);
		}
		term_put(f, rows_text(r, "name"));
		fputs(" (", f);
		put_count(f, count(r, "hosts"), "host");
		putc(')', f);
	}
	if (json_array_size(cards) > 0)
		fputs(".\n", f);
}

static void put_transfer(struct libscols_table *t, const json_t *r)
{
	struct libscols_line *line = scols_table_new_line(t, NULL);
	const json_t *rate = json_object_get(r, "busbw_gbs");
	char buf[48];

	if (!line)
		return;
	table_cell(line, 0, rows_text(r, "op"));
	snprintf(buf, sizeof buf, "%" PRId64, count(r, "bytes"));
	table_cell(line, 1, is_known(r, "bytes") ? buf : "?");
	snprintf(buf, sizeof buf, "%" PRId64, count(r, "calls"));
	table_cell(line, 2, buf);
	snprintf(buf, sizeof buf, "%" PRId64, count(r, "ranks_seen"));
	table_cell(line, 3, buf);
	table_cell_ns(line, 4, r, "transfer_ns");
	table_cell_ns(line, 5, r, "longest_ns");
	snprintf(buf, sizeof buf, "%.3g", json_number_value(rate));
	table_cell(line, 6, json_is_number(rate) ? buf : "?");
}

static void put_transfers(FILE *f, const json_t *nccl)
{
	static const char *const names[] = { "OPERATION", "BYTES", "CALLS", "RANKS", "TRANSFER", "LONGEST", "BEST GB/S" };
	const json_t *rows = json_object_get(nccl, "transfers"), *timed = json_object_get(nccl, "timed");
	size_t n = json_array_size(rows);
	struct libscols_table *t = n > 0 ? table_new(f) : NULL;

	if (count(timed, "calls") > 0)
		fprintf(f, "%" PRId64 " calls recorded, %" PRId64 " of them with the enqueue alone, %" PRId64
			   " with their time.",
			count(timed, "calls"), count(timed, "enqueue_only"), count(timed, "placed_in_time"));
	if (count(timed, "calls") > 0 && is_known(timed, "dropped"))
		fprintf(f, " %" PRId64 " found no room.", count(timed, "dropped"));
	if (count(timed, "calls") > 0)
		putc('\n', f);
	if (!t)
		return;
	fputs("The shortest duration of the ranks of a call is its transfer; what is longer is waiting for others:\n", f);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		table_column(t, names[i], i > 0);
	for (size_t i = 0; i < n && i < TRANSFERS_SHOWN; i++)
		put_transfer(t, json_array_get(rows, i));
	table_put(f, t);
	if (n > TRANSFERS_SHOWN)
		fprintf(f, "… and %zu more: SELECT * FROM nccl_transfer\n", n - TRANSFERS_SHOWN);
}

static void put_topologies(FILE *f, const json_t *nccl)
{
	size_t i;
	json_t *r;

	json_array_foreach(json_object_get(nccl, "topologies"), i, r)
	{
		size_t far = json_array_size(json_object_get(r, "gpus_far_from_a_nic"));
		size_t slower = json_array_size(json_object_get(r, "gpus_with_a_slower_link"));

		term_put(f, rows_text(r, "file"));
		fputs(": ", f);
		put_count(f, count(r, "gpus"), "GPU");
		fputs(", ", f);
		put_count(f, count(r, "nics"), "network card");
		if (is_known(r, "nvlinks")) {
			fputs(", ", f);
			put_count(f, count(r, "nvlinks"), "NVLink");
		}
		if (far > 0)
			fprintf(f, "; no card but over a CPU: %zu of the GPUs", far);
		if (slower > 0)
			fprintf(f, "; a slower PCIe link than the fastest: %zu of the GPUs", slower);
		fputs(".\n", f);
	}
	json_array_foreach(json_object_get(nccl, "graphs"), i, r)
	{
		term_put(f, rows_text(r, "file"));
		fputs(": ", f);
		term_put(f, rows_text(r, "algorithm"));
		fputs(", ", f);
		put_count(f, count(r, "channels"), "channel");
		fputs(" of ", f);
		put_count(f, count(r, "gpus"), "GPU");
		fprintf(f, ", each %.3g GB/s inside a host (", json_number_value(json_object_get(r, "speed_intra_gbs")));
		term_put(f, rows_text(r, "type_intra"));
		fputs(").\n", f);
	}
}

void report_nccl_put(FILE *f, const json_t *nccl)
{
	size_t i;
	json_t *c;

	if (!json_is_object(nccl))
		return;
	fprintf(f, "\n%sNCCL%s\n", term_on(f, STYLE_BOLD), term_off(f));
	json_array_foreach(json_object_get(nccl, "communicators"), i, c)
	{
		if (i == 8) {
			fprintf(f, "… and %zu more: SELECT * FROM nccl_comm\n",
				json_array_size(json_object_get(nccl, "communicators")) - i);
			break;
		}
		put_comm(f, nccl, c);
	}
	put_cards(f, json_object_get(nccl, "cards"));
	put_lines(f, json_object_get(nccl, "lines"));
	put_transfers(f, nccl);
	put_topologies(f, nccl);
}
