/* fault_bytes.h - bytes on their way through the proxy, and where a command or a reply ends. */
#ifndef FAULT_BYTES_H
#define FAULT_BYTES_H

#include <stddef.h>

struct fault_bytes {
    unsigned char *data;
    size_t begin; /* the first byte not yet taken */
    size_t end;
    size_t room;
};

size_t fault_bytes_n(const struct fault_bytes *b);
void fault_bytes_add(struct fault_bytes *b, const void *bytes, size_t n);
void fault_bytes_skip(struct fault_bytes *b, size_t n);
/* The first @n bytes go from one to the end of the other. */
void fault_bytes_move(struct fault_bytes *from, struct fault_bytes *to, size_t n);
void fault_bytes_free(struct fault_bytes *b);

/* Bytes of the first command or reply; 0: it is not whole yet; -1: that is no RESP. */
long fault_command_length(const struct fault_bytes *b);
long fault_reply_length(const struct fault_bytes *b);
/* The first word of a whole command, as capitals, cut if there is not room for it. */
void fault_command_name(const struct fault_bytes *b, char *name, size_t room);

#endif
