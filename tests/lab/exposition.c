/* exposition.c - see exposition.h. */
#include "lab/exposition.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "due/metrics.h"

#define LINES 20000
#define NAME  128

struct family {
    char name[NAME];
    char type[16];
    bool help;
};

struct reader {
    struct family family;
    char seen[1000][NAME];
    size_t families;
    const char *lines[LINES]; /* their beginnings, up to the value */
    size_t length[LINES];
    size_t count;
    char last_series[1024]; /* of a histogram: the labels but le */
    double last_bucket;
    double last_le;
    bool infinite;
};

static char wrong[512];

static const char *say(const char *what, const char *line)
{
    snprintf(wrong, sizeof wrong, "%s: %.*s", what, (int)strcspn(line, "\n"), line);
    return wrong;
}

static bool letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static size_t name_length(const char *s, bool colons)
{
    size_t n = 0;

    while (letter(s[n]) || (colons && s[n] == ':') || (n > 0 && s[n] >= '0' && s[n] <= '9'))
        n++;
    return n;
}

static bool ends_in(const char *s, size_t n, const char *end)
{
    size_t m = strlen(end);

    return n >= m && memcmp(s + n - m, end, m) == 0;
}

/* The length of name="value"; 0: it is none. */
static size_t label_length(const char *s)
{
    size_t n = name_length(s, false);

    if (n == 0 || s[n] != '=' || s[n + 1] != '"')
        return 0;
    for (n += 2; s[n] != '"'; n++) {
        if (s[n] == '\0' || s[n] == '\n')
            return 0;
        if (s[n] == '\\') {
            n++;
            if (s[n] != '\\' && s[n] != '"' && s[n] != 'n')
                return 0;
        }
    }
    return n + 1;
}

/* The length of {label,label}; *@le gets where le="..." is, or NULL. */
static size_t labels_length(const char *s, const char **le)
{
    size_t n = 1;

    *le = NULL;
    for (;;) {
        size_t label = label_length(s + n);

        if (label == 0)
            return 0;
        if (strncmp(s + n, "le=\"", 4) == 0)
            *le = s + n + 4;
        n += label;
        if (s[n] == '}')
            return n + 1;
        if (s[n++] != ',')
            return 0;
    }
}

static const char *comment(struct reader *r, const char *line)
{
    char kind[8];
    char name[NAME];
    char rest[256];

    if (sscanf(line, "# %7s %127s %255[^\n]", kind, name, rest) != 3)
        return say("a comment that says nothing", line);
    if (name_length(name, true) != strlen(name))
        return say("not a name", line);
    if (strcmp(kind, "HELP") == 0) {
        if (r->family.help)
            return say("HELP without TYPE before it", line);
        for (size_t i = 0; i < r->families; i++) {
            if (strcmp(r->seen[i], name) == 0)
                return say("a family in two pieces", line);
        }
        snprintf(r->seen[r->families++], NAME, "%s", name);
        r->family = (struct family){ .help = true };
        snprintf(r->family.name, NAME, "%s", name);
        return NULL;
    }
    if (strcmp(kind, "TYPE") != 0 || !r->family.help || strcmp(name, r->family.name) != 0)
        return say("not the TYPE of what HELP named", line);
    if (strcmp(rest, "counter") != 0 && strcmp(rest, "gauge") != 0 &&
        strcmp(rest, "histogram") != 0)
        return say("no such type", line);
    if ((strcmp(rest, "counter") == 0) != ends_in(name, strlen(name), "_total"))
        return say("counters, and only they, end in _total", line);
    snprintf(r->family.type, sizeof r->family.type, "%.15s", rest);
    r->family.help = false;
    r->last_series[0] = '\0';
    return NULL;
}

/* A line of a histogram: buckets rise, and the count is that of the last. */
static const char *histogram_line(struct reader *r, const char *line, size_t name, const char *le,
                                  double value)
{
    size_t base = strlen(r->family.name);
    char series[1024];

    if (ends_in(line, name, "_sum") && name == base + 4)
        return r->infinite ? NULL : say("no bucket of +Inf", line);
    if (ends_in(line, name, "_count") && name == base + 6)
        return r->infinite && value == r->last_bucket ? NULL : say("not the last bucket's", line);
    if (name != base + 7 || !ends_in(line, name, "_bucket") || le == NULL)
        return say("not a line of a histogram", line);
    snprintf(series, sizeof series, "%.*s", (int)(le - line), line);
    double bound = strtod(le, NULL);
    if (strcmp(series, r->last_series) == 0 && !(bound > r->last_le && value >= r->last_bucket))
        return say("buckets fall", line);
    snprintf(r->last_series, sizeof r->last_series, "%s", series);
    r->last_le = bound;
    r->last_bucket = value;
    r->infinite = isinf(bound) != 0;
    return NULL;
}

static const char *sample(struct reader *r, const char *line)
{
    size_t name = name_length(line, true);
    size_t base = strlen(r->family.name);
    const char *le = NULL;
    size_t n = name;
    char *end;

    if (name == 0 || r->family.type[0] == '\0' || r->family.help)
        return say("a line without a family", line);
    if (line[n] == '{') {
        size_t labels = labels_length(line + n, &le);

        if (labels == 0)
            return say("labels", line);
        n += labels;
    }
    if (line[n] != ' ' || line[n + 1] == ' ')
        return say("no blank before the value", line);
    double value = strtod(line + n + 1, &end);
    if (end == line + n + 1 || *end != '\n')
        return say("not a number, or more than one", line);
    if (strcmp(r->family.type, "gauge") != 0 && !(value >= 0))
        return say("a count below 0", line);
    for (size_t i = 0; i < r->count; i++) {
        if (r->length[i] == n && memcmp(r->lines[i], line, n) == 0)
            return say("twice", line);
    }
    if (r->count == LINES)
        return say("too many lines for this reader", line);
    r->lines[r->count] = line;
    r->length[r->count++] = n;
    if (strncmp(line, r->family.name, base) != 0)
        return say("of another family", line);
    if (strcmp(r->family.type, "histogram") == 0)
        return histogram_line(r, line, name, le, value);
    return name == base ? NULL : say("of another family", line);
}

const char *exposition_check(const char *text)
{
    struct reader *r = calloc(1, sizeof *r);
    const char *bad = NULL;

    if (r == NULL)
        return "no memory";
    for (const char *line = text; bad == NULL && *line != '\0'; line = strchr(line, '\n') + 1) {
        if (strchr(line, '\n') == NULL)
            bad = say("the last line does not end", line);
        else
            bad = line[0] == '#' ? comment(r, line) : sample(r, line);
        if (bad != NULL)
            break;
    }
    free(r);
    return bad;
}

static char *text_of(due_queue *q, int (*write)(due_queue *q, char *text, size_t size))
{
    int need = write(q, NULL, 0);
    size_t size = need > 0 ? (size_t)need + 4096 : 0; /* figures may have grown by a digit */
    char *text = size > 0 ? malloc(size) : NULL;
    int len = text != NULL ? write(q, text, size) : 0;

    if (len > 0 && strlen(text) == (size_t)len)
        return text;
    free(text);
    return NULL;
}

char *exposition_text(due_queue *q)
{
    return text_of(q, due_metrics_write);
}

static int census_write(due_queue *q, char *text, size_t size)
{
    return due_census_write(q, text, size, DUE_S(10));
}

char *exposition_census(due_queue *q)
{
    return text_of(q, census_write);
}

double exposition_value(const char *text, const char *name_and_labels)
{
    size_t n = strlen(name_and_labels);

    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, name_and_labels, n) == 0 && line[n] == ' ')
            return strtod(line + n, NULL);
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return NAN;
}

bool exposition_family(const char **at, char *name, size_t size)
{
    const char *next = strstr(*at, "# TYPE ");

    if (next == NULL)
        return false;
    next += strlen("# TYPE ");
    snprintf(name, size, "%.*s", (int)strcspn(next, " "), next);
    *at = next;
    return true;
}
