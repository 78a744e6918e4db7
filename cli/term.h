/* term.h - colour and numbers for people.
 *
 * Colour is on for a terminal only, NO_COLOR and CLICOLOR_FORCE are obeyed and
 * --color wins. Meaning is never carried by colour alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum term_color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };
void term_set_color(enum term_color c);
bool term_has_color(FILE *f);

enum term_style { STYLE_PLAIN, STYLE_BOLD, STYLE_DIM, STYLE_GOOD, STYLE_WARN, STYLE_BAD };
/* The escape sequence, or "" where there is no colour. */
const char *term_on(FILE *f, enum term_style s);
const char *term_off(FILE *f);

/* "1.25 ms", "830 ns", "12.0 s"; "?" for INT64_MIN. Returns buf. */
const char *term_ns(int64_t ns, char *buf, size_t n);
/* "2026-01-31 12:00:05 UTC"; "?" when unknown. Returns buf. */
const char *term_time(int64_t unix_ns, char *buf, size_t n);
/* text without control characters: what a database or a host says is shown,
 * never obeyed by the terminal. */
void term_put(FILE *f, const char *text);
