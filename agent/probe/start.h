/* start.h - start with the answer already known, for the public API's own rules. */
#pragma once

#include "probe.h"

/* PROBE_ON: really start. Anything else: settle on being off for that reason. */
enum probe_off probe_start_unless(enum probe_off already);
