/* commands.c - `duectl restore`, `verify`, `doctor`: what they take; a file, or a server? */
#include "inspect/inspect.h"

#include <stdio.h>

static const char usage_restore[] =
    "usage: duectl restore [OPTION]... [URL]\n"
    "\n"
    "Shows what a stored queue holds, without becoming its owner: jobs by topic, the times at "
    "which\n"
    "the first and the last of them are due (UTC), and how often they have been handed out; then "
    "the\n"
    "dead, with the times at which they died.\n"
    "URL is a Redis, or the path of a file; without one it is that of the environment variable\n"
    "DUE_STORE_URL.\n"
    "\n"
    "  --store URL    the same as URL\n"
    "  --queue NAME   which queue (duectl)\n"
    "  --list         list every job: id, due, priority, attempts, failures, bytes, topic, text;\n"
    "                 of the dead: id, died, the same, and why\n"
    "  --json         a line of JSON for the queue, each topic and the dead; or with --list a job\n"
    "  --help\n"
    "\n"
    "Exit status: 0 shown; 1 there is no such queue, or it cannot be read; 2 wrong usage; 3 no\n"
    "connection, or the server refuses.\n";

static const char usage_verify[] =
    "usage: duectl verify [OPTION]... [URL]\n"
    "\n"
    "Looks whether a stored queue is whole: every job in exactly one topic, on a lease or among "
    "the\n"
    "dead, every record there and readable, every time right, every key somebody's, nothing left\n"
    "over; of a queue that is shared, that somebody is woken for its jobs.  It may be in use.\n"
    "URL is a Redis, or the path of a file; without one it is that of the environment variable\n"
    "DUE_STORE_URL.\n"
    "\n"
    "  --store URL    the same as URL\n"
    "  --queue NAME   which queue (duectl)\n"
    "  --repair       put every job whose record can be read where that says, set aside what\n"
    "                 cannot be read, remove what is left over; only if nobody owns the queue,\n"
    "                 or shares it\n"
    "  --json         each finding is a line of JSON, and the last has the numbers\n"
    "  --help\n"
    "\n"
    "Exit status: 0 whole, or repaired; 1 something is wrong, or there is no such queue; 2 wrong\n"
    "usage; 3 it cannot be known: no connection, or the server refuses, or somebody else has "
    "what\n"
    "is to be repaired.\n";

static const char usage_doctor[] =
    "usage: duectl doctor [OPTION]... [URL]\n"
    "\n"
    "Looks at a server: version, persistence and what survives which crash, eviction, latency, "
    "the\n"
    "clock, permissions; and says what to change.  It tries the commands that are needed on keys "
    "of\n"
    "its own, which it removes.  Of a file it says whose it is, and how large.  URL is a Redis, or "
    "the\n"
    "path of a file; without one it is that of the environment variable DUE_STORE_URL.\n"
    "\n"
    "  --store URL    the same as URL\n"
    "  --queue NAME   the queue whose keys must be permitted (duectl)\n"
    "  --assume WHAT  what a server keeps that does not say: none, everysec or always\n"
    "  --json         a line of JSON each, and the last says how many changes there are to be\n"
    "  --help\n"
    "\n"
    "Exit status: 0 all is well; 1 something is to be changed; 2 wrong usage; 3 no connection.\n";

/* ---- Options --------------------------------------------------------------------------------- */

static bool take_list(struct ctl_look *look, const char *value)
{
    (void)value;
    look->list = true;
    return true;
}

static bool take_repair(struct ctl_look *look, const char *value)
{
    (void)value;
    look->repair = true;
    return true;
}

static bool take_json(struct ctl_look *look, const char *value)
{
    (void)value;
    look->json = true;
    return true;
}

static bool take_assume(struct ctl_look *look, const char *value)
{
    return ctl_durability_read("--assume", value, &look->assume);
}

/* ---- The commands ---------------------------------------------------------------------------- */

static int restore_go(struct ctl_look *look)
{
    const char *path = ctl_file_of(look->url);

    ctl_report_begin(look->json);
    return ctl_report_end(path != NULL ? ctl_file_restore(path, look) : ctl_server_restore(look));
}

static int verify_go(struct ctl_look *look)
{
    const char *path = ctl_file_of(look->url);

    ctl_report_begin(look->json);
    return ctl_report_end(path != NULL ? ctl_file_verify(path, look) : ctl_server_verify(look));
}

static int doctor_go(struct ctl_look *look)
{
    const char *path = ctl_file_of(look->url);

    ctl_report_begin(look->json);
    return ctl_report_end(path != NULL ? ctl_file_doctor(path, look) : ctl_server_doctor(look));
}

static const struct ctl_look_option of_restore[] = { { "list", false, take_list, NULL },
                                                     { "json", false, take_json, NULL } };
static const struct ctl_look_option of_verify[] = { { "repair", false, take_repair, NULL },
                                                    { "json", false, take_json, NULL } };
static const struct ctl_look_option of_doctor[] = {
    { "assume", true, take_assume, "none everysec always" }, { "json", false, take_json, NULL }
};

const struct ctl_command ctl_restore = { "restore", usage_restore, CTL_URL_ONLY, of_restore,
                                         2,         restore_go };
const struct ctl_command ctl_verify = { "verify", usage_verify, CTL_URL_ONLY, of_verify,
                                        2,        verify_go };
const struct ctl_command ctl_doctor = { "doctor", usage_doctor, CTL_URL_ONLY, of_doctor,
                                        2,        doctor_go };
