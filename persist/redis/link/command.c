/* command.c - commands, written into a link's own buffer. */
#include <assert.h>
#include <string.h>

#include "redis/link/link_inside.h"

#define KEEP_OUTPUT ((size_t)1 << 20) /* a larger buffer is given back after it was sent */

void due__link_command(struct due__link *l, size_t arguments)
{
    assert(l->arguments == 0 && arguments > 0);
    due__bytes_command(&l->output, arguments);
    l->arguments = arguments;
    l->formatted++;
}

void due__link_bytes(struct due__link *l, const void *bytes, size_t len)
{
    assert(l->arguments > 0);
    due__bytes_argument(&l->output, bytes, len);
    l->arguments--;
}

void due__link_text(struct due__link *l, const char *text)
{
    due__link_bytes(l, text, strlen(text));
}

void due__link_number(struct due__link *l, int64_t number)
{
    assert(l->arguments > 0);
    due__bytes_number(&l->output, number);
    l->arguments--;
}

void due__link_words(struct due__link *l, size_t n, const char *const *words)
{
    due__link_command(l, n);
    for (size_t i = 0; i < n; i++)
        due__link_text(l, words[i]);
}

size_t due__link_formatted(const struct due__link *l)
{
    return l->output.len;
}

void due__link_forget(struct due__link *l)
{
    due__bytes_clear(&l->output, KEEP_OUTPUT);
    l->formatted = 0;
    l->arguments = 0;
}
