/* cli.h - what every command of `syncline` shares.
 *
 * A command is one row in main.c's table and one function here. Facts go to
 * stdout, everything said about them to stderr; the exit status is one of
 * enum cli_exit, or the job's own for `run`.
 */
#pragma once

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum cli_exit {
	EXIT_FINE = 0,
	EXIT_FINDING = 1,    /* a finding above notice stands */
	EXIT_USAGE = 2,	     /* wrong use, also a refused or wrong SQL statement */
	EXIT_UNREACHED = 3,  /* could not reach, open or read */
	EXIT_TOO_CLOSE = 4,  /* the evidence lies inside the error */
	EXIT_INCOMPLETE = 5, /* data is missing and nothing was found */
};

struct command {
	const char *name, *summary;
	int (*run)(int argc, char **argv); /* argv[0] is "syncline NAME" */
};
extern const struct command cli_commands[]; /* ends with a NULL name */

int cmd_run(int argc, char **argv);
int cmd_demo(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_sql(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_serve(int argc, char **argv);
int cmd_clocks(int argc, char **argv);
int cmd_sim(int argc, char **argv);
int cmd_path(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_export(int argc, char **argv);

/* --color, for every command that draws. Its parser is a child of theirs. */
extern const struct argp cli_color_argp;

/* One argp run with the exit status and the error texts of this program. arg is
 * handed to the parser. Returns false after it has printed an error. */
bool cli_parse(const struct argp *argp, int argc, char **argv, unsigned flags, int *ret_next,
	       void *arg);

/* Of a parser whose command takes one DATABASE: whatever key is none of its own. */
error_t cli_one_database(int key, char *arg, struct argp_state *state, const char **ret_path);

/* A decimal number in [lo, hi] or an argp_error() that names the option. */
long cli_number(struct argp_state *state, const char *option, const char *text, long lo, long hi);

/* "syncline: …" on stderr, a whole line. */
void cli_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* How many letters to change, add or drop make a of b: for "did you mean". SIZE_MAX for long ones. */
size_t cli_distance(const char *a, const char *b);
