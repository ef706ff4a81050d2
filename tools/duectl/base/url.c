/* url.c - the address of a server, and how its password is hidden.
 *
 * What stands on a command line can be seen by every user of the machine, as long as the process
 * lives.  So the URL is copied, and what stands between its scheme and its host is overwritten
 * where it stood, first of all.  It was to be seen for a moment: the environment variable
 * DUE_STORE_URL is the better place.  The copies are in memory that a core dump leaves out.
 */
#define _GNU_SOURCE
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { KEPT_MAX = 64 };

static const char variable[] = "DUE_STORE_URL";

/* An argument that was overwritten in part; a URL may be a part of it too. */
static struct kept {
    const char *shown;
    char *text;
    size_t len;
} kept[KEPT_MAX];
static size_t kept_count;
static char *from_environment;

/* ---- Bytes ------------------------------------------------------------------------------------
 *
 * The functions of the C library leave up to 64 bytes of what they look at in vector registers, and
 * a function that is called for the first time writes these to the stack.  So all of this goes byte
 * by byte, and volatile keeps the compiler from making it a call or vectors. */

static size_t length(const char *text)
{
    const volatile char *bytes = text;
    size_t n = 0;

    while (bytes[n] != '\0')
        n++;
    return n;
}

static bool begins(const char *text, const char *with)
{
    const volatile char *bytes = text;

    for (size_t i = 0; with[i] != '\0'; i++) {
        if (bytes[i] != with[i])
            return false;
    }
    return true;
}

/* The first @what in it, or NULL. */
static char *first(char *text, const char *what)
{
    for (size_t i = 0, n = length(text); i < n; i++) {
        if (begins(text + i, what))
            return text + i;
    }
    return NULL;
}

static char *last(char *text, char what)
{
    const volatile char *bytes = text;

    for (size_t i = length(text); i > 0; i--) {
        if (bytes[i - 1] == what)
            return text + i - 1;
    }
    return NULL;
}

/* ---- Texts ----------------------------------------------------------------------------------- */

/* Where the user and the password of a text stand, if it has any. */
static bool secret_of(char *text, bool is_url, char **from, char **to)
{
    char *scheme = first(text, "://");

    *to = last(text, '@');
    if (*to == NULL || (scheme == NULL && !is_url) || (scheme != NULL && *to < scheme))
        return false;
    *from = scheme != NULL ? scheme + 3 : text;
    return true;
}

static bool is_of_scheme(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' || c == '-';
}

/* An argument of this form is a URL, or was meant to be one. */
static bool begins_as_url(const char *text)
{
    const volatile char *bytes = text;
    size_t n = 0;

    while (is_of_scheme(bytes[n]))
        n++;
    return n > 0 && begins(text + n, ":/");
}

bool ctl_is_url(const char *text)
{
    return begins_as_url(text) && strstr(text, "://") != NULL;
}

static void overwrite(char *text, bool is_url)
{
    char *from;
    char *to;

    if (secret_of(text, is_url, &from, &to))
        memset(from, '*', (size_t)(to - from));
}

/* Never freed.  NULL: no memory. */
static char *copy_apart(const char *text)
{
    const volatile char *from = text;
    size_t bytes = length(text) + 1;
    char *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (copy == MAP_FAILED)
        return NULL;
    (void)madvise(copy, bytes, MADV_DONTDUMP); /* where that cannot be done nobody asks for it */
    for (size_t i = 0; i < bytes; i++)
        ((volatile char *)copy)[i] = from[i];
    return copy;
}

static void hide(char *text, char *url)
{
    struct kept *k = &kept[kept_count];

    if (last(url, '@') == NULL)
        return;
    if (kept_count < KEPT_MAX) {
        k->text = copy_apart(text);
        if (k->text != NULL) {
            k->shown = text;
            k->len = length(text);
            kept_count++;
        }
    }
    overwrite(url, true);
}

/* The URL in an argument of the form --store=URL, however that is shortened or misspelt: what is
 * said of an unknown option has it too.  NULL: there is none. */
static char *value_of(char *argument)
{
    char *value = begins(argument, "--") ? first(argument, "=") : NULL;
    bool of_text = begins(argument, "--exec=") || begins(argument, "--topic=");

    if (value == NULL || of_text)
        return NULL;
    value++;
    return begins(argument, "--store=") || begins(argument, "--source=") || begins_as_url(value)
               ? value
               : NULL;
}

/* As getenv(). */
static char *value_of_variable(void)
{
    size_t n = sizeof variable - 1;

    for (char **at = environ; at != NULL && *at != NULL; at++) {
        if (begins(*at, variable) && (*at)[n] == '=')
            return *at + n + 1;
    }
    return NULL;
}

void ctl_urls_hide(int argc, char **argv)
{
    char *value = value_of_variable();

    for (int i = 1; i < argc; i++) {
        char *url = value_of(argv[i]);

        if (url != NULL)
            hide(argv[i], url);
        else if ((begins(argv[i - 1], "--store") && argv[i - 1][7] == '\0') ||
                 (begins(argv[i - 1], "--source") && argv[i - 1][8] == '\0') ||
                 begins_as_url(argv[i]))
            hide(argv[i], argv[i]);
    }
    if (value != NULL && value[0] != '\0') {
        from_environment = copy_apart(value);
        overwrite(value, true);
        unsetenv(variable); /* commands are not told either */
    }
}

const char *ctl_url_of(const char *shown)
{
    if (shown == NULL)
        return from_environment;
    for (size_t i = 0; i < kept_count; i++) {
        if (shown >= kept[i].shown && shown <= kept[i].shown + kept[i].len)
            return kept[i].text + (shown - kept[i].shown);
    }
    return shown;
}

/* Overwritten rather than freed: a pointer to it may be left, as a sign that there was a URL. */
void ctl_urls_forget(void)
{
    for (size_t i = 0; i < kept_count; i++)
        explicit_bzero(kept[i].text, kept[i].len);
    if (from_environment != NULL)
        explicit_bzero(from_environment, length(from_environment));
}
