/* record.h - a job's bytes in a store, version 1.
 *
 * A record holds what a job was put with; it is written once.  What changes later, that is when it
 * is to be handed out next and how often it was, lies in an entry of its own, and only for jobs of
 * which it differs.  Numbers are little-endian.
 *
 *     record   0  version, 1               entry    0  version, 1
 *              1  flags                             1  flags, 0
 *              2  check (2)                         2  check (2)
 *              4  deadline, ns (8)                  4  deadline, ns (8)
 *             12  with DUE__RECORD_TOPIC:          12  until, ns (8)
 *                 length (1), topic                20  attempts (4)
 *                 then the payload                 24  failures (4)
 *
 * Twelve bytes of head, since 76 bytes are the most that cost no more in Redis than a payload of 64
 * does alone.  The check is over the job's id and all bytes but its own, and has the same place and
 * meaning in every version to come: so damage is told from a newer version, and from the record of
 * another job.  A flag that a reader does not know must not be ignored by it.
 */
#ifndef DUE__RECORD_H
#define DUE__RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "due/store.h"

#define DUE__RECORD_VERSION 1
#define DUE__RECORD_HEAD    12
#define DUE__RECORD_TOPIC   0x01u /* a topic other than "" */

#define DUE__RECORD_FRONT (DUE__RECORD_HEAD + 1 + DUE_TOPIC_LENGTH) /* most bytes before payload */
#define DUE__ENTRY_BYTES  28

/* What the check of a record or an entry of the job @id must be: its third and fourth byte, the
 * lower first.  @len: DUE__RECORD_HEAD at least. */
uint64_t due__record_check(due_id id, const void *bytes, size_t len);

/* The bytes that stand before the payload, into @front; answers how many. */
size_t due__record_front(const due_record *record, unsigned char front[DUE__RECORD_FRONT]);

/* Whether it needs an entry besides. */
int due__record_has_entry(const due_record *record);

void due__entry_write(const due_record *record, unsigned char entry[DUE__ENTRY_BYTES]);

/* Read a record: all fields of @record but id, which the caller has set.  @topic receives the name.
 * until_ns is the deadline, attempts and failures are 0 until an entry says otherwise.  The payload
 * is not copied.  DUE_ECORRUPT: damaged, or another job's; DUE_EVERSION. */
int due__record_read(due_record *record, char topic[DUE_TOPIC_LENGTH + 1], const void *bytes,
                     size_t len);

/* Read the entry of the job that was read into @record before.  Errors as above. */
int due__entry_read(due_record *record, const void *bytes, size_t len);

#endif
