/* test_page.c - the page of a queue's figures, family by family. */
#include <stdio.h>
#include <stdlib.h>

#include "due/metrics.h"
#include "lab/exposition.h"
#include "lab/lab.h"

/* Lines of a family, of those with this in them. */
static unsigned lines_of(const char *text, const char *family, const char *with)
{
    size_t n = strlen(family);
    unsigned lines = 0;

    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *end = strchr(line, '\n');
        const char *found =
            strncmp(line, family, n) == 0 && line[n] == '{' ? strstr(line, with) : NULL;

        lines += found != NULL && found < end;
    }
    return lines;
}

/* Of each topic the same, from the one that jobs without a topic have to the last. */
LAB_TEST(page, has_each_topic_in_each_family_of_topics)
{
    static const char *const names[] = { "topic=\"\"", "topic=\"mail\"", "topic=\"post\"" };
    struct lab lab = lab_open(.with.metrics = 1);
    unsigned families = 0;

    lab_topic(&lab, "mail");
    lab_topic(&lab, "post");
    char *text = exposition_text(lab.q);
    for (const char *at = strstr(text, "# TYPE due_topic_"); at != NULL;
         at = strstr(at + 1, "# TYPE due_topic_")) {
        char name[64];
        char type[32];

        cr_assert_eq(sscanf(at, "# TYPE %63s %31s", name, type), 2);
        if (strcmp(type, "histogram") == 0) /* of some topics only */
            continue;
        cr_expect_gt(lines_of(text, name, names[0]), 0u, "%s", name);
        for (int i = 1; i < 3; i++)
            cr_expect_eq(lines_of(text, name, names[i]), lines_of(text, name, names[0]), "%s: %s",
                         name, names[i]);
        families++;
    }
    cr_expect_gt(families, 5u);
    free(text);
    lab_close(&lab);
}

/* Not those of the proxies, which have begun to sleep, nor of memory. */
static bool is_of_running(const char *line)
{
    static const char *const names[] = { "due_memory_", "due_proxy_calls_", "due_wakeups_",
                                         "due_heartbeat" };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(line, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* Where there is nothing every figure is 0, each as it is written: a count, or a time. */
LAB_TEST(page, of_a_queue_that_is_empty_has_zeroes)
{
    struct lab lab = lab_open(.start_ns = 1000, .with.metrics = 1, .with.name = "orders");
    unsigned figures = 0;

    int mail = lab_topic(&lab, "mail");
    cr_assert_eq(due_topic_measure(lab.q, mail), 0);
    char *text = exposition_text(lab.q);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        const char *value = strrchr(line, ' ') + 1;
        const char *wanted = strstr(line, "_seconds{") != NULL || strstr(line, "_sum{") != NULL
                                 ? "0.000000000"
                                 : "0";

        if (line[0] == '#' || is_of_running(line))
            continue;
        if (strncmp(line, "due_topics{", 11) == 0)
            wanted = "2";
        if (strncmp(line, "due_next_deadline_seconds{", 26) == 0)
            wanted = "+Inf";
        cr_expect_str_eq(value, wanted, "%s", line);
        figures++;
    }
    cr_expect_gt(figures, 100u);
    free(text);
    lab_close(&lab);
}
