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
