/* fuzz_address.c - any bytes as a URL: an address that makes sense, or a refusal that says why. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "redis/link/link.h"

static void check_plain(const char *text)
{
    for (; text != NULL && *text != '\0'; text++)
        assert((unsigned char)*text >= 0x20 && *text != 0x7f);
}

static void check_address(const struct due__address *a)
{
    char text[512];
    char tiny[4];

    assert((a->host == NULL) != (a->path == NULL));
    assert(a->path == NULL || (a->path[0] == '/' && strlen(a->path) <= 107));
    assert(a->host == NULL || (a->host[0] != '\0' && a->port > 0 && a->port <= 65535));
    assert(a->db >= 0 && !a->tls);
    assert(a->user == NULL || (a->user[0] != '\0' && a->password != NULL));
    check_plain(a->host);
    check_plain(a->path);
    check_plain(a->user);
    check_plain(a->password);
    due__address_show(a, text, sizeof text);
    due__address_show(a, tiny, sizeof tiny);
    assert(strlen(text) < sizeof text && strncmp(text, tiny, sizeof tiny - 1) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct due__address a;
    due_error error;
    char *url = malloc(size + 1);

    if (url == NULL)
        return 0;
    if (size > 0)
        memcpy(url, data, size);
    url[size] = '\0';
    int rc = due__address_parse(&a, url, &error);
    if (rc == 0)
        check_address(&a);
    else
        assert(error.text[0] != '\0' && a.host == NULL && a.path == NULL && a.password == NULL);
    due__address_wipe(&a);
    free(url);
    return 0;
}
