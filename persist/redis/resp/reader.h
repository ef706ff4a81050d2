/* reader.h - replies out of bytes that a server sent, within limits.
 *
 * Every byte is looked at before hiredis sees it, so that no announced size is believed: a reply
 * over the limits is refused before memory for it is asked for.  hiredis is given the bytes of one
 * reply only, and so knows nothing of the next when the caller has this one.
 */
#ifndef DUE__REDIS_READER_H
#define DUE__REDIS_READER_H

#include <stddef.h>

struct redisReply;
struct due__reader;

/* What each element of a reply counts besides its bytes: about the memory it takes. */
#define DUE__READER_ELEMENT 96

/* At most @elements in one array, and @bytes in one reply with its elements counted as above. */
struct due__reader *due__reader_new(size_t elements, size_t bytes);
void due__reader_free(struct due__reader *r);

/* Forget what was read: the bytes to come are another connection's. */
void due__reader_clear(struct due__reader *r);

/* Read up to the end of one reply; *@used is how many bytes that took.  1: *@reply is the caller's
 * until freeReplyObject(); 0: all were used, more are needed; DUE_ECORRUPT, DUE_ENOMEM: nothing can
 * be read any more until due__reader_clear(). */
int due__reader_take(struct due__reader *r, const char *bytes, size_t len, size_t *used,
                     struct redisReply **reply);

#endif
