/* file_lock.h - who has a file: a lock that is let go when its process ends. */
#ifndef DUE__SQLITE_FILE_LOCK_H
#define DUE__SQLITE_FILE_LOCK_H

#include <stdbool.h>
#include <stddef.h>

#define DUE__HOLDER 160

struct due__file_lock;

/* Take the lock on the file at @path, which is made if it is not there, without waiting, and write
 * into it who we are.  0; DUE_EBUSY: somebody else has it, and @holder says who, or is "";
 * DUE_EACCES or DUE_ESTORE, and errno says why; DUE_ENOMEM. */
int due__file_lock_take(struct due__file_lock **lock, const char *path, char holder[DUE__HOLDER]);

/* Is what was locked still what others find at @path? */
bool due__file_lock_is_at(const struct due__file_lock *lock, const char *path);

/* Let it go; the file stays.  NULL is allowed.  Not in a child: what it has got by a fork is its
 * parent's. */
void due__file_lock_drop(struct due__file_lock *lock);

/* The same of one that was taken for nothing: its file, at that @path, goes if nobody had locked it
 * before.  Who has opened that meanwhile notices. */
void due__file_lock_undo(struct due__file_lock *lock, const char *path);

#endif
