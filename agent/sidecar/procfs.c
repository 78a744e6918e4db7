#include "procfs.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_TEXT 16384 /* more is cut; what we read stands at the beginning */

/* ---- parsers */

/* A number at *p, which moves past it. */
static bool number(const char **p, uint64_t *ret)
{
	uint64_t v = 0;
	const char *s = *p;

	while (*s == ' ' || *s == '\t')
		s++;
	if (!isdigit((unsigned char)*s))
		return false;
	for (; isdigit((unsigned char)*s); s++) {
		unsigned d = (unsigned)(*s - '0');

		if (v > (UINT64_MAX - d) / 10)
			return false;
		v = v * 10 + d;
	}
	*p = s;
	*ret = v;
	return true;
}

static const char *next_line(const char *p)
{
	p = strchr(p, '\n');
	return p ? p + 1 : NULL;
}

static const char *find_line(const char *text, const char *start)
{
	size_t n = strlen(start);

	for (const char *p = text; p; p = next_line(p))
		if (strncmp(p, start, n) == 0)
			return p;
	return NULL;
}

bool procfs_parse_stat(const char *text, struct procfs_cpu *ret)
{
	const char *p = find_line(text, "cpu ");
	uint64_t v[8] = { 0 }, sum = 0; /* user nice system idle iowait irq softirq steal */

	if (!p)
		return false;
	p += 4;
	for (int i = 0; i < 8; i++)
		if (!number(&p, &v[i]) && i < 4)
			return false;
	for (int i = 0; i < 8; i++)
		if (__builtin_add_overflow(sum, v[i], &sum))
			return false;
	ret->idle = v[3] + v[4];
	ret->busy = sum - ret->idle;
	return true;
}

bool procfs_parse_meminfo(const char *text, const char *name, uint64_t *ret_bytes)
{
	size_t n = strlen(name);
	uint64_t kb;

	for (const char *p = text; p; p = next_line(p)) {
		const char *q;

		if (strncmp(p, name, n) != 0 || p[n] != ':')
			continue;
		q = p + n + 1;
		if (!number(&q, &kb) || kb > UINT64_MAX / 1024)
			return false;
		*ret_bytes = kb * 1024;
		return true;
	}
	return false;
}

/* Which word of the line is this field? -1 = none. */
static int column_of(const char *line, const char *field)
{
	size_t n = strlen(field);

	for (int i = 0; *line && *line != '\n'; i++) {
		size_t k = strcspn(line, " \n");

		if (k == n && strncmp(line, field, n) == 0)
			return i;
		line += k;
		line += strspn(line, " ");
	}
	return -1;
}

bool procfs_parse_snmp(const char *text, const char *protocol, const char *field, uint64_t *ret)
{
	char start[32];
	const char *head, *line;
	int column;

	snprintf(start, sizeof start, "%s: ", protocol);
	head = find_line(text, start);
	line = head ? next_line(head) : NULL;
	if (!line || strncmp(line, start, strlen(start)) != 0)
		return false;
	column = column_of(head, field);
	if (column < 0)
		return false;
	for (int i = 0; i < column; i++) {
		line += strcspn(line, " \n");
		if (*line != ' ')
			return false;
		line += strspn(line, " ");
	}
	return number(&line, ret);
}

static bool parse_interface(const char *line, struct procfs_interface *ret)
{
	const char *p = line + strspn(line, " ");
	size_t n = strcspn(p, ":\n");
	uint64_t v[12];

	if (p[n] != ':' || n == 0 || n >= sizeof ret->name)
		return false;
	memcpy(ret->name, p, n);
	ret->name[n] = 0;
	for (size_t i = 0; i < n; i++)
		if (!isgraph((unsigned char)p[i]))
			return false;
	p += n + 1;
	for (int i = 0; i < 12; i++)
		if (!number(&p, &v[i]))
			return false;
	ret->rx_bytes = v[0];
	ret->rx_dropped = v[3];
	ret->tx_bytes = v[8];
	ret->tx_dropped = v[11];
	return true;
}

size_t procfs_parse_net_dev(const char *text, struct procfs_interface *ret)
{
	size_t n = 0;

	for (const char *p = text; p && n < PROCFS_MAX_INTERFACES; p = next_line(p))
		if (parse_interface(p, &ret[n]) && strcmp(ret[n].name, "lo") != 0)
			n++;
	return n;
}

bool procfs_parse_pressure(const char *text, uint64_t *ret_some_us)
{
	const char *p = find_line(text, "some ");
	const char *end = p ? strchr(p, '\n') : NULL;
	const char *total = p ? strstr(p, " total=") : NULL;

	if (!total || (end && total > end))
		return false;
	total += strlen(" total=");
	return number(&total, ret_some_us);
}

bool procfs_parse_process(const char *text, struct procfs_process *ret)
{
	const char *p = strrchr(text, ')'); /* the name may hold any character, this one too */
	uint64_t v[25] = { 0 };

	if (!p || p[1] != ' ' || !isalpha((unsigned char)p[2]) || p[3] != ' ')
		return false;
	ret->state = p[2];
	p += 4;
	for (int i = 4; i <= 24; i++) { /* fields as proc(5) numbers them */
		p += strspn(p, " ");
		if (*p == '-')
			p++; /* tpgid, priority and nice may be negative; none is used */
		if (!number(&p, &v[i]))
			return false;
	}
	ret->cpu_ticks = v[14] + v[15];
	ret->n_threads = v[20];
	ret->rss_pages = v[24];
	return true;
}

bool procfs_parse_status(const char *text, const char *name, uint64_t *ret)
{
	size_t n = strlen(name);

	for (const char *p = text; p; p = next_line(p)) {
		const char *q;

		if (strncmp(p, name, n) != 0 || p[n] != ':')
			continue;
		q = p + n + 1;
		return number(&q, ret);
	}
	return false;
}

/* ---- sampling */

enum { F_STAT, F_MEMINFO, F_LOADAVG, F_SNMP, F_NET_DEV, F_CPU, F_IO, F_MEMORY, F_N };

static const char *const paths[F_N] = {
	[F_STAT] = "/proc/stat",
	[F_MEMINFO] = "/proc/meminfo",
	[F_LOADAVG] = "/proc/loadavg",
	[F_SNMP] = "/proc/net/snmp",
	[F_NET_DEV] = "/proc/net/dev",
	[F_CPU] = "/proc/pressure/cpu",
	[F_IO] = "/proc/pressure/io",
	[F_MEMORY] = "/proc/pressure/memory",
};

#define N_NAMES 256 /* more interfaces than this in one run are not named */

struct procfs {
	int fd[F_N];
	char text[MAX_TEXT];
	int64_t last_ns;
	struct procfs_cpu cpu;
	bool have_cpu, have_pressure[3];
	uint64_t pressure_us[3];
	char *names[N_NAMES]; /* "net.rx_bytes.eth0": they outlive the sample */
	size_t n_names;
	double ns_per_tick;
	long page_bytes;
};

int procfs_open(struct procfs **ret)
{
	struct procfs *p = calloc(1, sizeof *p);

	if (!p)
		return -ENOMEM;
	for (int i = 0; i < F_N; i++)
		p->fd[i] = open(paths[i], O_RDONLY | O_CLOEXEC);
	p->ns_per_tick = 1e9 / (double)sysconf(_SC_CLK_TCK);
	p->page_bytes = sysconf(_SC_PAGESIZE);
	*ret = p;
	return 0;
}

void procfs_close(struct procfs *p)
{
	if (!p)
		return;
	for (int i = 0; i < F_N; i++)
		if (p->fd[i] >= 0)
			close(p->fd[i]);
	for (size_t i = 0; i < p->n_names; i++)
		free(p->names[i]);
	free(p);
}

static bool read_text(struct procfs *p, int fd)
{
	ssize_t n = fd < 0 ? -1 : pread(fd, p->text, sizeof p->text - 1, 0);

	if (n <= 0)
		return false;
	p->text[n] = 0;
	return true;
}

static const char *name_of(struct procfs *p, const char *what, const char *interface)
{
	char buf[64];

	snprintf(buf, sizeof buf, "net.%.20s.%.15s", what, interface);
	for (size_t i = 0; i < p->n_names; i++)
		if (strcmp(p->names[i], buf) == 0)
			return p->names[i];
	if (p->n_names == N_NAMES || !(p->names[p->n_names] = strdup(buf)))
		return NULL;
	return p->names[p->n_names++];
}

static void sample_net(struct procfs *p, procfs_gauge_fn fn, void *arg)
{
	struct procfs_interface v[PROCFS_MAX_INTERFACES];
	size_t n = procfs_parse_net_dev(p->text, v);

	for (size_t i = 0; i < n; i++) {
		struct {
			const char *what;
			uint64_t value;
		} g[] = { { "rx_bytes", v[i].rx_bytes },
			  { "tx_bytes", v[i].tx_bytes },
			  { "rx_dropped", v[i].rx_dropped },
			  { "tx_dropped", v[i].tx_dropped } };

		for (size_t k = 0; k < sizeof g / sizeof *g; k++) {
			const char *name = name_of(p, g[k].what, v[i].name);

			if (name)
				fn(arg, name, (double)g[k].value);
		}
	}
}

static void sample_pressure(struct procfs *p, int64_t now_ns, procfs_gauge_fn fn, void *arg)
{
	static const char *const names[3] = { "host.pressure_cpu", "host.pressure_io",
					      "host.pressure_memory" };
	double elapsed_us = (double)(now_ns - p->last_ns) / 1e3;

	for (int i = 0; i < 3; i++) {
		uint64_t us;

		if (!read_text(p, p->fd[F_CPU + i]) || !procfs_parse_pressure(p->text, &us))
			continue;
		if (p->have_pressure[i] && us >= p->pressure_us[i] && elapsed_us > 0)
			fn(arg, names[i], (double)(us - p->pressure_us[i]) / elapsed_us);
		p->pressure_us[i] = us;
		p->have_pressure[i] = true;
	}
}

void procfs_sample_host(struct procfs *p, int64_t now_ns, procfs_gauge_fn fn, void *arg)
{
	struct procfs_cpu cpu;
	uint64_t v;

	if (read_text(p, p->fd[F_STAT]) && procfs_parse_stat(p->text, &cpu)) {
		uint64_t busy = cpu.busy - p->cpu.busy, idle = cpu.idle - p->cpu.idle;

		/* idle may run back a little: the kernel says so */
		if (p->have_cpu && cpu.busy >= p->cpu.busy && cpu.idle >= p->cpu.idle &&
		    busy + idle > 0)
			fn(arg, "host.cpu_util", (double)busy / (double)(busy + idle));
		p->cpu = cpu;
		p->have_cpu = true;
	}
	if (read_text(p, p->fd[F_MEMINFO])) {
		if (procfs_parse_meminfo(p->text, "MemAvailable", &v))
			fn(arg, "host.memory_available_bytes", (double)v);
		if (procfs_parse_meminfo(p->text, "MemTotal", &v))
			fn(arg, "host.memory_total_bytes", (double)v);
		if (procfs_parse_meminfo(p->text, "Shmem", &v))
			fn(arg, "host.shared_memory_bytes", (double)v);
	}
	if (read_text(p, p->fd[F_LOADAVG])) {
		char *end;
		double load = strtod(p->text, &end);

		if (end != p->text && load >= 0 && load < 1e9)
			fn(arg, "host.load1", load);
	}
	if (read_text(p, p->fd[F_SNMP])) {
		if (procfs_parse_snmp(p->text, "Tcp", "RetransSegs", &v))
			fn(arg, "net.retransmits", (double)v);
		if (procfs_parse_snmp(p->text, "Tcp", "OutSegs", &v))
			fn(arg, "net.tcp_segments_sent", (double)v);
		if (procfs_parse_snmp(p->text, "Udp", "RcvbufErrors", &v))
			fn(arg, "net.udp_receive_drops", (double)v);
	}
	if (read_text(p, p->fd[F_NET_DEV]))
		sample_net(p, fn, arg);
	sample_pressure(p, now_ns, fn, arg);
	p->last_ns = now_ns;
}

static bool read_of_process(struct procfs *p, pid_t pid, const char *what)
{
	char path[64];
	bool ok;
	int fd;

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, what);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ok = read_text(p, fd);
	if (fd >= 0)
		close(fd);
	return ok;
}

void procfs_sample_process(struct procfs *p, pid_t pid, struct procfs_seen *seen, int64_t now_ns,
			   procfs_gauge_fn fn, void *arg)
{
	struct procfs_process v;
	uint64_t n;

	if (!read_of_process(p, pid, "stat") || !procfs_parse_process(p->text, &v))
		return;
	if (seen->at_ns != 0 && now_ns > seen->at_ns && v.cpu_ticks >= seen->cpu_ticks)
		fn(arg, "cpu_util",
		   (double)(v.cpu_ticks - seen->cpu_ticks) * p->ns_per_tick /
			   (double)(now_ns - seen->at_ns));
	seen->at_ns = now_ns;
	seen->cpu_ticks = v.cpu_ticks;
	fn(arg, "rss_bytes", (double)v.rss_pages * (double)p->page_bytes);
	fn(arg, "threads", (double)v.n_threads);
	if (read_of_process(p, pid, "status")) {
		if (procfs_parse_status(p->text, "voluntary_ctxt_switches", &n))
			fn(arg, "switches_voluntary", (double)n);
		if (procfs_parse_status(p->text, "nonvoluntary_ctxt_switches", &n))
			fn(arg, "switches_involuntary", (double)n);
	}
}

uint64_t procfs_own_rss_bytes(void)
{
	char buf[128];
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof buf - 1);
	const char *p = buf;
	uint64_t size, rss = 0;

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return 0;
	buf[n] = 0;
	if (!number(&p, &size) || !number(&p, &rss))
		return 0;
	return rss * (uint64_t)sysconf(_SC_PAGESIZE);
}
