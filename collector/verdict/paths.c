#include "paths.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void paths_fini(struct paths *p)
{
	free(p->procs);
	free(p->hosts);
	free(p->links);
	free(p->ports);
	free(p->proc_of_rank);
	*p = (struct paths){ 0 };
}

/* A number, or the number at the beginning of a text ("16GT/s", "x8"); 0 = none. */
static double number(const struct side_record *r, const char *field)
{
	const json_t *v = json_object_get(r->fields, field);
	const char *text = json_string_value(v);
	double d;

	if (text) {
		text += *text == 'x' || *text == 'X';
		d = strtod(text, NULL);
	} else {
		d = json_number_value(v);
	}
	return d > 0 && d < 1e9 ? d : 0;
}

static bool is_on(const struct side_record *r, const char *field, const char *const *words, size_t n)
{
	const char *text = side_text(r, field);

	for (size_t i = 0; text && i < n; i++)
		if (strcasecmp(text, words[i]) == 0)
			return true;
	return !text && side_number(r, field, 0) > 0;
}

static uint32_t host_of(const struct roster *r, const struct side_record *v)
{
	const char *name = side_text(v, "host");

	for (uint32_t i = 0; name && i < r->n_hosts; i++)
		if (r->hosts[i].name && strcmp(r->hosts[i].name, name) == 0)
			return i;
	return r->procs[v->proc].host;
}

/* GT/s and lanes of PCIe with its encoding; GB/s a link and links of NVLink. */
static double link_gbs(const struct path_link *l)
{
	if (!(l->width > 0) || !(l->speed > 0))
		return 0;
	if (l->kind && strcasecmp(l->kind, "pcie") == 0)
		return l->width * l->speed / 8 * (l->speed > 5.5 ? 128.0 / 130 : 0.8);
	return l->width * l->speed;
}

static void take_nic(struct path_proc *p, const struct side_record *v)
{
	p->nic = side_text(v, "nic");
	p->dist = side_text(v, "dist");
}

static int take_link(struct paths *p, const struct side_record *v)
{
	struct path_link *l, key = { .proc = v->proc, .kind = side_text(v, "kind"),
				     .peer = side_number(v, "peer", -1), .width = number(v, "width"),
				     .speed = number(v, "speed") };

	key.gbs = link_gbs(&key);
	for (uint32_t i = p->procs[v->proc].links; i; i = l->next) {
		l = &p->links[i - 1];
		if (l->peer == key.peer && l->kind && key.kind && strcmp(l->kind, key.kind) == 0) {
			key.next = l->next;
			*l = key; /* the newest word */
			return 0;
		}
	}
	if (!facts_reserve((void **)&p->links, &p->n_links, &p->n_links_alloc, sizeof *l))
		return -ENOMEM;
	key.next = p->procs[v->proc].links;
	p->links[p->n_links - 1] = key;
	p->procs[v->proc].links = (uint32_t)p->n_links;
	return 0;
}

static int take_port(struct paths *p, const struct roster *r, const struct side_record *v)
{
	struct path_port key = { .proc = v->proc, .host = host_of(r, v), .dev = side_text(v, "dev"),
				 .state = side_text(v, "state"), .gbs = number(v, "speed") / 8 };

	if (!key.dev)
		key.dev = "";
	for (size_t i = 0; i < p->n_ports; i++)
		if (p->ports[i].host == key.host && strcmp(p->ports[i].dev, key.dev) == 0) {
			p->ports[i] = key;
			return 0;
		}
	if (!facts_reserve((void **)&p->ports, &p->n_ports, &p->n_ports_alloc, sizeof key))
		return -ENOMEM;
	p->ports[p->n_ports - 1] = key;
	return 0;
}

static const char *setting(const struct side_record *v, const char *field)
{
	int64_t n = side_number(v, field, -1);

	return side_text(v, field) ? side_text(v, field) : n > 0 ? "on" : n == 0 ? "off" : NULL;
}

static void take_pci(struct paths *p, const struct roster *r, const struct side_record *v)
{
	static const char *const acs[] = { "on", "enabled", "yes", "true" };
	static const char *const iommu[] = { "translated", "on", "strict", "enabled" };
	const char *name = side_text(v, "host");
	uint32_t host = host_of(r, v);
	bool known = !name || (r->hosts[host].name && strcmp(r->hosts[host].name, name) == 0);
	struct path_pci *h = known ? &p->hosts[host] : &p->procs[v->proc].pci;

	h->said = true;
	h->host = name;
	h->acs = setting(v, "acs");
	h->iommu = setting(v, "iommu");
	h->detour = is_on(v, "acs", acs, sizeof acs / sizeof *acs) ||
		    is_on(v, "iommu", iommu, sizeof iommu / sizeof *iommu);
}

static int make_ranks(struct paths *p, const struct roster *r)
{
	int32_t most = -1;

	for (uint32_t i = 0; i < r->n_procs; i++)
		most = r->procs[i].rank > most ? r->procs[i].rank : most;
	p->n_ranks = (uint32_t)(most + 1);
	p->proc_of_rank = calloc((size_t)p->n_ranks + 1, sizeof *p->proc_of_rank);
	if (!p->proc_of_rank)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->n_procs; i++)
		if (r->procs[i].rank >= 0)
			p->proc_of_rank[r->procs[i].rank] = i + 1;
	return 0;
}

int paths_look(struct paths *p, const struct side *s, const struct roster *r)
{
	int e;

	if (p->proc_of_rank && p->n_records == s->n && p->n_procs == r->n_procs && p->n_hosts == r->n_hosts)
		return 0;
	paths_fini(p);
	e = make_ranks(p, r);
	p->procs = calloc((size_t)r->n_procs + 1, sizeof *p->procs);
	p->hosts = calloc((size_t)r->n_hosts + 1, sizeof *p->hosts);
	if (e < 0 || !p->procs || !p->hosts)
		return -ENOMEM;
	p->n_procs = r->n_procs;
	p->n_hosts = r->n_hosts;
	for (size_t i = 0; i < s->n && e == 0; i++) {
		const struct side_record *v = &s->v[i];

		if (v->kind == SIDE_GPU_NIC)
			take_nic(&p->procs[v->proc], v);
		else if (v->kind == SIDE_PCI)
			take_pci(p, r, v);
		else if (v->kind == SIDE_LINK)
			e = take_link(p, v);
		else if (v->kind == SIDE_PORT)
			e = take_port(p, r, v);
	}
	p->n_records = s->n;
	return e;
}

uint32_t paths_proc(const struct paths *p, int32_t rank)
{
	return rank >= 0 && (uint32_t)rank < p->n_ranks ? p->proc_of_rank[rank] - 1 : UINT32_MAX;
}

uint32_t paths_n_users(const struct paths *p, const struct roster *r, uint32_t host, const char *nic)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->n_procs; i++)
		n += r->procs[i].host == host && p->procs[i].nic && strcmp(p->procs[i].nic, nic) == 0;
	return n;
}

const struct path_pci *paths_pci(const struct paths *p, const struct roster *r, uint32_t proc)
{
	static const struct path_pci nothing;

	if (proc >= p->n_procs)
		return &nothing;
	return p->procs[proc].pci.said ? &p->procs[proc].pci : &p->hosts[r->procs[proc].host];
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
	double m;

	if (n > 0)
		qsort(v, n, sizeof *v, by_value);
	m = n > 0 ? v[(n - 1) / 2] : 0;
	free(v);
	return m;
}

/* NVLink where there is any: ranks that have it do not talk over PCIe. */
double paths_inside_gbs(const struct paths *p)
{
	double *v = malloc((p->n_links + 1) * sizeof *v);
	bool only_nvlink = false;
	size_t n = 0;

	for (size_t i = 0; i < p->n_links; i++)
		only_nvlink |= p->links[i].kind && strcasecmp(p->links[i].kind, "nvlink") == 0;
	for (size_t i = 0; v && i < p->n_links; i++)
		if (p->links[i].gbs > 0 && (!only_nvlink || (p->links[i].kind &&
							     strcasecmp(p->links[i].kind, "nvlink") == 0)))
			v[n++] = p->links[i].gbs;
	return median(v, n);
}

double paths_between_gbs(const struct paths *p)
{
	double *v = malloc((p->n_ports + 1) * sizeof *v);
	size_t n = 0;

	for (size_t i = 0; v && i < p->n_ports; i++)
		if (p->ports[i].gbs > 0)
			v[n++] = p->ports[i].gbs;
	return median(v, n);
}
