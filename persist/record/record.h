/* record.h - a job's bytes in a store, version 1.
 *
 * A record holds what a job was put with; it is written once.  What changes later, that is when it
 * is to be handed out next, how often it was, and that it is dead, lies in an entry of its own, and
 * only for jobs of which it differs.  Numbers are little-endian.
 *
 *     record   0  version, 1               entry    0  version, 1
 *              1  flags                             1  flags
 *              2  check (2)                         2  check (2)
 *              4  deadline, ns (8)                  4  deadline, ns (8)
 *             12  with DUE__RECORD_TOPIC:          12  until, ns (8)
 *                 length (1), topic                20  attempts (4)
 *                 then what other flags say        24  failures (4)
 *                 (record_more.c),                 28  with DUE__ENTRY_DEAD: cause (1),
 *                 then the payload                     died, ns (8), length (1), reason
 *
 * Twelve bytes of head, since 76 bytes are the most that cost no more in Redis than a payload of 64
 * does alone.  The check is over the job's id and all bytes but its own, and has the same place and
 * meaning in every version to come: so damage is told from a newer version, and from the record of
 * another job.  A flag that a reader does not know must not be ignored by it.  There is one way to
 * write a job, and a reader takes no other.
 */
#ifndef DUE__RECORD_H
#define DUE__RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "due/store.h"

#define DUE__RECORD_VERSION 1
#define DUE__RECORD_HEAD    12
#define DUE__RECORD_TOPIC   0x01u /* a topic other than "" */
#define DUE__RECORD_HEADERS 0x02u
#define DUE__RECORD_RETRY   0x04u /* a policy of its own */
#define DUE__RECORD_NUMBERS 0x08u /* time limits, repetition, how long its key is kept */
#define DUE__RECORD_KEY     0x10u
#define DUE__RECORD_GROUP   0x20u
#define DUE__RECORD_MORE    0x3eu /* all that record_more.c knows of */

#define DUE__ENTRY_BYTES 28    /* of a job that is not dead */
#define DUE__ENTRY_DEAD  0x01u /* it is */
#define DUE__ENTRY_MOST  (DUE__ENTRY_BYTES + 10 + DUE_REASON_BYTES - 1)

/* Most bytes of all that may stand before the payload. */
#define DUE__RETRY_MOST  (1 + 4 + 1 + 8 * DUE_RUNGS_MAX)
#define DUE__NUMBER_MOST (1 + 4 * 8)
#define DUE__RECORD_FRONT                                                              \
    (DUE__RECORD_HEAD + 1 + DUE_TOPIC_LENGTH + 2 + DUE_HEADERS_MAX + DUE__RETRY_MOST + \
     DUE__NUMBER_MOST + 2 * (1 + DUE_KEY_MAX))

/* Where a record that was read keeps what it points to, besides the bytes that it was read from. */
struct due__record_room {
    char topic[DUE_TOPIC_LENGTH + 1];
    due_retry retry;
    char reason[DUE_REASON_BYTES];
};

/* What the check of a record or an entry of the job @id must be: its third and fourth byte, the
 * lower first.  @len: DUE__RECORD_HEAD at least. */
uint64_t due__record_check(due_id id, const void *bytes, size_t len);

/* The bytes that stand before the payload, into @front; answers how many. */
size_t due__record_front(const due_record *record, unsigned char front[DUE__RECORD_FRONT]);

/* Whether it needs an entry besides. */
bool due__record_has_entry(const due_record *record);

/* Answers how many bytes. */
size_t due__entry_write(const due_record *record, unsigned char entry[DUE__ENTRY_MOST]);

/* Read a record: all fields of @record but id, which the caller has set.  until_ns is the deadline,
 * attempts and failures are 0, and it is not dead, until an entry says otherwise.  Payload,
 * headers, key and group are not copied.  DUE_ECORRUPT: damaged, or another job's; DUE_EVERSION. */
int due__record_read(due_record *record, struct due__record_room *room, const void *bytes,
                     size_t len);

/* The key that a record names; its check is not looked at.  False: none. */
bool due__record_key(const void *bytes, size_t len, const void **key, size_t *key_len);

/* Read the entry of the job that was read into @record before.  Errors as above. */
int due__entry_read(due_record *record, struct due__record_room *room, const void *bytes,
                    size_t len);

/* ---- record_more.c ---- */

/* Numbers, little-endian. */
void due__bytes_put(unsigned char *at, uint64_t value, size_t bytes);
uint64_t due__bytes_get(const unsigned char *at, size_t bytes);

/* What is left of the bytes being read. */
struct due__rest {
    const unsigned char *at;
    size_t len;
};

/* Flags of what only some jobs have, and their bytes, into @at; answers how many. */
unsigned due__more_flags(const due_record *record);
size_t due__more_write(const due_record *record, unsigned char *at);
/* Read them, those of @flags.  0, DUE_ECORRUPT, DUE_EVERSION. */
int due__more_read(due_record *record, struct due__record_room *room, unsigned flags,
                   struct due__rest *rest);

#endif
