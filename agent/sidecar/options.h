/* options.h - the agent's command line. */
#pragma once

#include "agent.h"

/* Exits by itself, with a sentence, on --help, --version and wrong usage. */
void options_parse(struct options *o, int argc, char **argv);
