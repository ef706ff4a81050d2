/* log.h - what a store tells the queue's log. */
#ifndef DUE__BASE_LOG_H
#define DUE__BASE_LOG_H

#include "due/store.h"

/* One line, of at most 255 bytes, to whoever opened the store; nobody may be listening. */
void due__store_log(const struct due_store_open *how, enum due_log_level level, const char *format,
                    ...) __attribute__((format(printf, 3, 4)));

#endif
