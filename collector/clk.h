/* clk.h - the collector's own clocks, and which machine and namespace they are of.
 *
 * Only the shell reads clocks; the core gets time as a parameter.
 */
#pragma once

#include <stdint.h>

int64_t clk_raw_ns(void);  /* CLOCK_MONOTONIC_RAW */
int64_t clk_real_ns(void); /* CLOCK_REALTIME */

#define CLK_BOOT_ID_BYTES 40
/* This boot of this kernel; "" when /proc is not there (then no peer shares our
 * clock, which costs accuracy and is never wrong). */
void clk_boot_id(char out[CLK_BOOT_ID_BYTES]);
/* A time namespace shifts the monotonic clocks. 0 when it cannot be read. */
uint64_t clk_time_ns_inode(void);
