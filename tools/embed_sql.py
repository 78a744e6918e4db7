"""SQL files to one C header: sql/report/ranks.sql becomes sql_report_ranks[].

The name is the path below sql/ with _ for /. Comments stay in the file and
leave the program.
"""
import pathlib
import re
import sys


def c_string(text):
    lines = [re.sub(r"^\s*--.*$", "", line).rstrip() for line in text.splitlines()]
    return "\n".join('\t"%s\\n"' % line.replace("\\", "\\\\").replace('"', '\\"')
                     for line in lines if line)


def main(out, root, *files):
    parts = ["/* Made by embed_sql.py from sql/. */", "#pragma once", ""]
    for name in files:
        path = pathlib.Path(name)
        symbol = "sql_" + re.sub(r"\W", "_", str(path.relative_to(root).with_suffix("")))
        parts += ["static const char %s[] =" % symbol, c_string(path.read_text()) + ";", ""]
    pathlib.Path(out).write_text("\n".join(parts))


main(*sys.argv[1:])
