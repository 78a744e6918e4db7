/* procfs.h - the host's counters, read from /proc once a second.
 *
 * Parsers are pure functions on text that believe nothing: a line that is not
 * as the kernel writes it is skipped, a missing number is "not known", never 0.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Jiffies of the "cpu" line. */
struct procfs_cpu {
	uint64_t busy, idle;
};
bool procfs_parse_stat(const char *text, struct procfs_cpu *ret);

/* "Name:  123 kB" -> bytes. */
bool procfs_parse_meminfo(const char *text, const char *name, uint64_t *ret_bytes);

/* A counter of /proc/net/snmp, e.g. "Tcp", "RetransSegs": by its header line. */
bool procfs_parse_snmp(const char *text, const char *protocol, const char *field,
		       uint64_t *ret);

#define PROCFS_MAX_INTERFACES 16
struct procfs_interface {
	char name[16];
	uint64_t rx_bytes, tx_bytes, rx_dropped, tx_dropped;
};
/* All but lo; at most PROCFS_MAX_INTERFACES. Returns how many. */
size_t procfs_parse_net_dev(const char *text, struct procfs_interface *ret);

/* "some … total=N": microseconds in which something waited. */
bool procfs_parse_pressure(const char *text, uint64_t *ret_some_us);

struct procfs_process {
	uint64_t cpu_ticks; /* user + system */
	uint64_t n_threads, rss_pages;
	char state;
};
/* /proc/PID/stat; the name in it may hold spaces and brackets. */
bool procfs_parse_process(const char *text, struct procfs_process *ret);
/* "name:\tN" of /proc/PID/status */
bool procfs_parse_status(const char *text, const char *name, uint64_t *ret);

/* Called for every value; name lives as long as the procfs. */
typedef void (*procfs_gauge_fn)(void *arg, const char *name, double value);

struct procfs;
int procfs_open(struct procfs **ret); /* 0 or -ENOMEM; missing files are values not known */
void procfs_close(struct procfs *p);
/* Rates are over the time since the last call; the first gives counters only. */
void procfs_sample_host(struct procfs *p, int64_t now_ns, procfs_gauge_fn fn, void *arg);

/* What is remembered of a process between samples; zeroed is fine. */
struct procfs_seen {
	int64_t at_ns;
	uint64_t cpu_ticks;
};
void procfs_sample_process(struct procfs *p, pid_t pid, struct procfs_seen *seen, int64_t now_ns,
			   procfs_gauge_fn fn, void *arg);
uint64_t procfs_own_rss_bytes(void);
