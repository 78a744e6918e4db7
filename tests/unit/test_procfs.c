#include "../../agent/sidecar/procfs.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char snmp[] =
	"Ip: Forwarding DefaultTTL\nIp: 1 64\n"
	"Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens RetransSegs InErrs\n"
	"Tcp: 1 200 120000 -1 4 4711 0\nUdp: InDatagrams RcvbufErrors\nUdp: 9 3\n";
static const char net_dev[] =
	"Inter-|   Receive                                                |  Transmit\n"
	" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs "
	"drop fifo colls carrier compressed\n"
	"    lo: 99 1 0 0 0 0 0 0 99 1 0 0 0 0 0 0\n"
	"  eth0: 1000 1 0 7 0 0 0 0 2000 1 0 8 0 0 0 0\n"
	"ib0:18446744073709551615 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n";

static void counters_are_found_by_their_header(void **state)
{
	uint64_t v;

	(void)state;
	assert_true(procfs_parse_snmp(snmp, "Tcp", "RetransSegs", &v));
	assert_int_equal(v, 4711);
	assert_true(procfs_parse_snmp(snmp, "Udp", "RcvbufErrors", &v));
	assert_int_equal(v, 3);
	assert_false(procfs_parse_snmp(snmp, "Tcp", "Retrans", &v));
	assert_false(procfs_parse_snmp(snmp, "Tcp", "MaxConn", &v)); /* -1: not a count */
	assert_false(procfs_parse_snmp("Tcp: RetransSegs\n", "Tcp", "RetransSegs", &v));
	assert_false(procfs_parse_snmp("Tcp: A RetransSegs\nTcp: 1\n", "Tcp", "RetransSegs", &v));
}

static void interfaces_are_listed_without_loopback(void **state)
{
	struct procfs_interface v[PROCFS_MAX_INTERFACES];

	(void)state;
	assert_int_equal(procfs_parse_net_dev(net_dev, v), 2);
	assert_string_equal(v[0].name, "eth0");
	assert_int_equal(v[0].rx_bytes, 1000);
	assert_int_equal(v[0].rx_dropped, 7);
	assert_int_equal(v[0].tx_bytes, 2000);
	assert_int_equal(v[0].tx_dropped, 8);
	assert_string_equal(v[1].name, "ib0");
	assert_true(v[1].rx_bytes == UINT64_MAX);
}

static void a_process_may_have_any_name(void **state)
{
	char text[512];
	struct procfs_process p;

	(void)state;
	snprintf(text, sizeof text,
		 "12 (a) R 1 (b) S 1 12 12 0 -1 4194304 1 0 0 0 30 12 0 0 20 0 5 0 100 4096 77 "
		 "18446744073709551615 0 0\n");
	assert_true(procfs_parse_process(text, &p));
	assert_int_equal(p.cpu_ticks, 42);
	assert_int_equal(p.n_threads, 5);
	assert_int_equal(p.rss_pages, 77);
	assert_int_equal(p.state, 'S');
}

static void memory_cpu_pressure_and_status_are_read(void **state)
{
	struct procfs_cpu c;
	uint64_t v;

	(void)state;
	assert_true(procfs_parse_meminfo("MemTotal: 8 kB\nMemAvailable:  3 kB\n", "MemAvailable", &v));
	assert_int_equal(v, 3072);
	assert_false(procfs_parse_meminfo("MemAvailable: 18446744073709551615 kB\n", "MemAvailable", &v));
	assert_true(procfs_parse_stat("cpu  10 1 5 100 20 1 2 3 0 0\ncpu0 1 1 1 1\n", &c));
	assert_int_equal(c.busy, 22);
	assert_int_equal(c.idle, 120);
	assert_true(procfs_parse_pressure(
		"some avg10=0.00 avg60=0.00 avg300=0.00 total=12345\nfull avg10=0 total=9\n", &v));
	assert_int_equal(v, 12345);
	assert_false(procfs_parse_pressure("some avg10=0.00\nfull avg10=0 total=9\n", &v));
	assert_true(procfs_parse_status("Name:\tx\nnonvoluntary_ctxt_switches:\t12\n",
					"nonvoluntary_ctxt_switches", &v));
	assert_int_equal(v, 12);
}

/* Cut at every length and with random bytes in it, each parser answers and stays
 * inside; the sanitizers watch an exact allocation. */
static void hostile_text_is_survived(void **state)
{
	static const char *const texts[] = {
		snmp, net_dev, "cpu  10 1 5 100 20 1 2 3 0 0\n", "MemAvailable:  3 kB\n",
		"some avg10=0.00 avg60=0.00 avg300=0.00 total=12345\n",
		"12 (a) S 1 12 12 0 -1 4194304 1 0 0 0 30 12 0 0 20 0 5 0 100 4096 77 1\n"
	};
	uint64_t rng = 42;

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		for (size_t n = 0; n <= strlen(texts[i]); n++) {
			for (int k = 0; k < 8; k++) {
				char *s = malloc(n + 1);
				struct procfs_interface v[PROCFS_MAX_INTERFACES];
				struct procfs_process p;
				struct procfs_cpu c;
				uint64_t u;

				memcpy(s, texts[i], n);
				s[n] = 0;
				for (int m = 0; m < k && n > 0; m++)
					s[unit_rand(&rng) % n] = (char)(1 + unit_rand(&rng) % 255);
				(void)procfs_parse_stat(s, &c);
				(void)procfs_parse_meminfo(s, "MemAvailable", &u);
				(void)procfs_parse_snmp(s, "Tcp", "RetransSegs", &u);
				(void)procfs_parse_net_dev(s, v);
				(void)procfs_parse_pressure(s, &u);
				(void)procfs_parse_process(s, &p);
				(void)procfs_parse_status(s, "Name", &u);
				free(s);
			}
		}
	}
}

struct seen {
	bool load, rss, negative;
	int n;
};

static void on_gauge(void *arg, const char *name, double value)
{
	struct seen *s = arg;

	s->n++;
	s->load |= strcmp(name, "host.load1") == 0;
	s->rss |= strcmp(name, "rss_bytes") == 0 && value > 0;
	s->negative |= value < 0;
}

static void this_host_and_this_process_have_gauges(void **state)
{
	struct procfs_seen before = { 0 };
	struct seen s = { 0 };
	struct procfs *p;

	(void)state;
	assert_int_equal(procfs_open(&p), 0);
	procfs_sample_host(p, 1000000000, on_gauge, &s);
	procfs_sample_host(p, 2000000000, on_gauge, &s);
	procfs_sample_process(p, getpid(), &before, 1000000000, on_gauge, &s);
	procfs_sample_process(p, getpid(), &before, 2000000000, on_gauge, &s);
	procfs_sample_process(p, 0x7ffffff0, &before, 3000000000, on_gauge, &s); /* no such one */
	procfs_close(p);
	assert_true(s.load && s.rss && !s.negative);
	assert_true(procfs_own_rss_bytes() > 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_are_found_by_their_header),
		cmocka_unit_test(interfaces_are_listed_without_loopback),
		cmocka_unit_test(a_process_may_have_any_name),
		cmocka_unit_test(memory_cpu_pressure_and_status_are_read),
		cmocka_unit_test(hostile_text_is_survived),
		cmocka_unit_test(this_host_and_this_process_have_gauges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
