#include "nccl_topology.h"

#include <expat.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct graph {
	int64_t id, channel, position, cross_nic;
	double speed_intra, speed_inter;
	char type_intra[8], type_inter[8];
	const char *algorithm, *pattern; /* static, NULL = not known */
};

struct reader {
	struct topology topology;
	struct graph graph;
	XML_Parser parser;
	uint32_t depth, n_stops;
	int32_t stack[TOPOLOGY_MAX_DEPTH]; /* the device around, -1 = none */
	char host[NCCL_HOST];
	int64_t numa;
	bool no_memory, has_root;
	char why[160];
};

static void refuse(struct reader *r, const char *why)
{
	if (!r->why[0])
		snprintf(r->why, sizeof r->why, "%s", why);
	XML_StopParser(r->parser, XML_FALSE);
}

/* ---- attributes ---- */

static const char *text_of(const XML_Char **attributes, const char *name)
{
	for (; *attributes; attributes += 2)
		if (strcmp(attributes[0], name) == 0)
			return attributes[1];
	return NULL;
}

static int64_t whole_of(const XML_Char **attributes, const char *name, int base)
{
	const char *text = text_of(attributes, name);
	char *end;
	long long v;

	if (!text || !text[0])
		return TRACE_NULL;
	v = strtoll(text, &end, base);
	return end != text && *end == '\0' ? v : TRACE_NULL;
}

static int64_t count_of(const XML_Char **attributes, const char *name)
{
	int64_t v = whole_of(attributes, name, 10);

	return v >= 0 && v <= INT32_MAX ? v : TRACE_NULL;
}

/* "32.0 GT/s PCIe"; 0 and words are no speed. */
static double real_of(const XML_Char **attributes, const char *name)
{
	const char *text = text_of(attributes, name);
	char *end;
	double v = text ? strtod(text, &end) : 0;

	return text && end != text && v > 0 && v < 1e9 ? v : NAN;
}

/* ---- a machine ---- */

static struct topology_device *add(struct reader *r, const char *bus)
{
	struct topology *t = &r->topology;
	int32_t parent = r->depth > 0 ? r->stack[r->depth - 1] : -1;
	struct topology_device *d;

	if (t->n == TOPOLOGY_MAX_DEVICES) {
		t->full = true;
		return NULL;
	}
	d = &t->v[t->n++];
	*d = (struct topology_device){ .parent = parent, .cpu = t->n_cpus, .numa = r->numa, .speed_gts = NAN,
				       .depth = parent >= 0 ? t->v[parent].depth + 1 : 0, .width = TRACE_NULL,
				       .device = TRACE_NULL, .rank = TRACE_NULL, .sm = TRACE_NULL, .gdr = TRACE_NULL,
				       .port = TRACE_NULL, .speed_mbps = TRACE_NULL, .n_nvlinks = TRACE_NULL };
	snprintf(d->bus, sizeof d->bus, "%.39s", bus ? bus : "");
	snprintf(d->host, sizeof d->host, "%s", r->host);
	if (parent >= 0)
		snprintf(d->above, sizeof d->above, "%s", t->v[parent].bus);
	else
		snprintf(d->above, sizeof d->above, "cpu %u", t->n_cpus > 0 ? t->n_cpus - 1 : 0);
	return d;
}

static void begin_pci(struct reader *r, const XML_Char **a)
{
	struct topology_device *d = add(r, text_of(a, "busid"));
	const char *class = text_of(a, "class");

	if (!d)
		return;
	d->is_gpu = class && strncmp(class, "0x03", 4) == 0;
	d->is_card = class && strncmp(class, "0x02", 4) == 0;
	d->speed_gts = real_of(a, "link_speed");
	d->width = count_of(a, "link_width");
	if (d->width == 0) /* a virtual machine does not tell */
		d->width = TRACE_NULL;
	r->stack[r->depth] = (int32_t)(d - r->topology.v);
}

static void begin_cpu(struct reader *r, const XML_Char **a)
{
	const char *host = text_of(a, "host_hash");
	int64_t numa = whole_of(a, "numaid", 10);

	r->numa = numa >= 0 && numa <= INT32_MAX ? numa : TRACE_NULL;
	r->topology.n_cpus++;
	r->host[0] = '\0';
	if (host)
		nccl_host(host, strlen(host), r->host);
}

static void begin_gpu(struct reader *r, struct topology_device *around, const XML_Char **a)
{
	if (!around)
		return;
	(void)r;
	around->is_gpu = true;
	around->device = count_of(a, "dev");
	around->sm = count_of(a, "sm");
	around->rank = count_of(a, "rank");
	around->gdr = count_of(a, "gdr");
	around->n_nvlinks = 0;
}

static void begin_nvlink(struct reader *r, struct topology_device *around, const XML_Char **a, const char *kind)
{
	int64_t n = count_of(a, "count");
	const char *target = text_of(a, "target");

	if (!around || !around->is_gpu)
		return;
	if (strcmp(kind, "nvlink") == 0 && n != TRACE_NULL && n < 1000)
		around->n_nvlinks = (around->n_nvlinks == TRACE_NULL ? 0 : around->n_nvlinks) + n;
	r->no_memory |= !trace_row(r->topology.trace, "topo_link", "ttttiri", r->topology.file, kind, around->bus,
				   target, n, NAN, TRACE_NULL);
}

/* A port of a card; where no device of PCI is around it, it hangs on the CPU. */
static void begin_net(struct reader *r, struct topology_device *around, const XML_Char **a)
{
	struct topology_device *d = around;
	const char *name = text_of(a, "name");

	if (!around || (around->is_card && around->name[0])) {
		d = add(r, around ? around->bus : NULL);
		if (d && around) { /* another port: beside the first */
			d->parent = around->parent;
			d->depth = around->depth;
			d->speed_gts = around->speed_gts;
			d->width = around->width;
			memcpy(d->above, around->above, sizeof d->above);
		}
	}
	if (!d)
		return;
	d->is_card = true;
	snprintf(d->name, sizeof d->name, "%.63s", name && name[0] ? name : "?");
	d->device = count_of(a, "dev");
	d->port = count_of(a, "port");
	d->speed_mbps = count_of(a, "speed");
	d->gdr = count_of(a, "gdr");
}

/* ---- channels ---- */

static void begin_graph(struct reader *r, const XML_Char **a)
{
	static const char *const algorithms[] = { "ring", "tree", "collnet chain", "nvls", "collnet direct" };
	static const char *const patterns[] = { NULL, "balanced tree", "split tree", "tree", "ring", "nvls",
						"collnet direct" };
	struct graph *g = &r->graph;
	const char *intra = text_of(a, "typeintra"), *inter = text_of(a, "typeinter");
	int64_t pattern = count_of(a, "pattern");

	*g = (struct graph){ .id = count_of(a, "id"), .channel = -1, .cross_nic = count_of(a, "crossnic"),
			     .speed_intra = real_of(a, "speedintra"), .speed_inter = real_of(a, "speedinter") };
	snprintf(g->type_intra, sizeof g->type_intra, "%.7s", intra ? intra : "");
	snprintf(g->type_inter, sizeof g->type_inter, "%.7s", inter ? inter : "");
	if (g->id >= 0 && g->id < (int64_t)(sizeof algorithms / sizeof *algorithms))
		g->algorithm = algorithms[g->id];
	if (pattern >= 0 && pattern < (int64_t)(sizeof patterns / sizeof *patterns))
		g->pattern = patterns[pattern];
}

static void put_stop(struct reader *r, const char *kind, const XML_Char **a)
{
	struct graph *g = &r->graph;

	if (g->channel < 0 || g->id < 0)
		return;
	if (r->n_stops++ >= TOPOLOGY_MAX_STOPS) {
		r->topology.full = true;
		return;
	}
	r->no_memory |= !trace_row(r->topology.trace, "graph_channel", "tittiitirrtti", r->topology.file, g->id,
				   g->algorithm, g->pattern, g->channel, g->position++, kind,
				   whole_of(a, "dev", 16), g->speed_intra, g->speed_inter,
				   g->type_intra[0] ? g->type_intra : NULL, g->type_inter[0] ? g->type_inter : NULL,
				   g->cross_nic);
}

/* ---- elements ---- */

static void in_graph(struct reader *r, const char *name, const XML_Char **a)
{
	if (strcmp(name, "graph") == 0) {
		begin_graph(r, a);
	} else if (strcmp(name, "channel") == 0) {
		r->graph.channel++;
		r->graph.position = 0;
	} else if (strcmp(name, "gpu") == 0 || strcmp(name, "net") == 0) {
		put_stop(r, name, a);
	}
}

static void in_system(struct reader *r, const char *name, const XML_Char **a)
{
	int32_t at = r->depth > 0 ? r->stack[r->depth - 1] : -1;
	struct topology_device *around = at >= 0 ? &r->topology.v[at] : NULL;

	if (strcmp(name, "cpu") == 0)
		begin_cpu(r, a);
	else if (strcmp(name, "pci") == 0)
		begin_pci(r, a);
	else if (strcmp(name, "gpu") == 0)
		begin_gpu(r, around, a);
	else if (strcmp(name, "nvlink") == 0 || strcmp(name, "c2c") == 0)
		begin_nvlink(r, around, a, name);
	else if (strcmp(name, "nic") == 0 && around)
		around->is_card = true;
	else if (strcmp(name, "net") == 0)
		begin_net(r, around, a);
}

static void on_begin(void *arg, const XML_Char *name, const XML_Char **a)
{
	struct reader *r = arg;

	if (!r->has_root) {
		r->topology.is_graph = strcmp(name, "graphs") == 0;
		if (!r->topology.is_graph && strcmp(name, "system") != 0) {
			refuse(r, "is XML, and neither a topology nor a graph of NCCL");
			return;
		}
		r->has_root = true;
	}
	if (r->depth == TOPOLOGY_MAX_DEPTH) {
		refuse(r, "is nested deeper than any topology");
		return;
	}
	r->stack[r->depth] = r->depth > 0 ? r->stack[r->depth - 1] : -1;
	if (r->topology.is_graph)
		in_graph(r, name, a);
	else
		in_system(r, name, a);
	r->depth++;
	if (r->no_memory)
		XML_StopParser(r->parser, XML_FALSE);
}

static void on_end(void *arg, const XML_Char *name)
{
	struct reader *r = arg;

	(void)name;
	r->depth--;
}

static void on_doctype(void *arg, const XML_Char *name, const XML_Char *system, const XML_Char *public, int internal)
{
	(void)name;
	(void)system;
	(void)public;
	(void)internal;
	refuse(arg, "is refused: it declares a document type, and no topology of NCCL does");
}

/* ---- the file ---- */

static bool parse(struct reader *r, bytes_fn read, void *arg)
{
	uint64_t n_bytes = 0;

	XML_SetUserData(r->parser, r);
	XML_SetElementHandler(r->parser, on_begin, on_end);
	XML_SetStartDoctypeDeclHandler(r->parser, on_doctype);
	for (;;) {
		void *buf = XML_GetBuffer(r->parser, 1 << 16);
		ptrdiff_t got = buf ? read(arg, buf, 1 << 16) : -1;

		r->no_memory |= !buf;
		if (got < 0)
			return false;
		n_bytes += (uint64_t)got;
		if (n_bytes > TOPOLOGY_MAX_BYTES) {
			snprintf(r->why, sizeof r->why, "is refused: it is longer than any topology");
			return false;
		}
		if (XML_ParseBuffer(r->parser, (int)got, got == 0) != XML_STATUS_OK) {
			if (!r->why[0])
				snprintf(r->why, sizeof r->why, "is no XML: line %lu: %.100s",
					 (unsigned long)XML_GetCurrentLineNumber(r->parser),
					 XML_ErrorString(XML_GetErrorCode(r->parser)));
			return false;
		}
		if (got == 0)
			return true;
	}
}

static enum import_outcome read_file(struct trace *t, struct trace_input *in, bytes_fn read, void *arg, char *why,
				     size_t n_why)
{
	struct reader *r = calloc(1, sizeof *r);
	const char *slash = strrchr(in->path, '/');
	enum import_outcome o = IMPORT_FAILED;
	uint32_t n_rows = t->n_rows;

	if (r) {
		r->parser = XML_ParserCreate(NULL);
		r->topology.trace = t;
		r->topology.v = calloc(TOPOLOGY_MAX_DEVICES, sizeof *r->topology.v);
		r->numa = TRACE_NULL;
		r->graph.channel = -1;
		snprintf(r->topology.file, sizeof r->topology.file, "%.255s", slash ? slash + 1 : in->path);
	}
	t->no_memory |= !r || !r->parser || !r->topology.v;
	if (!t->no_memory && parse(r, read, arg) && !r->no_memory && topology_put(&r->topology)) {
		in->n_events = r->topology.is_graph ? r->n_stops : r->topology.n;
		if (r->topology.full)
			snprintf(why, n_why, "ok; it has more devices than are kept");
		o = IMPORT_OK;
	} else if (r) {
		snprintf(why, n_why, "%s", r->why);
		t->no_memory |= r->no_memory;
	}
	if (o != IMPORT_OK)
		trace_forget_rows(t, n_rows);
	if (r && r->parser)
		XML_ParserFree(r->parser);
	if (r)
		free(r->topology.v);
	free(r);
	return o;
}

static bool is_topology(const struct import_head *h)
{
	return head_first(h) == '<' && (head_has(h, "<system") || head_has(h, "<graphs"));
}

const struct import_format format_nccl_topology = { "NCCL topology", is_topology, read_file, topology_join, true };
