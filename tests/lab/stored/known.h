/* known.h - unit tests of verbs that are left out on a queue with a store, and why. */
#ifndef KNOWN_H
#define KNOWN_H

struct stored_known {
    const char *row; /* what the documentation says of it; "": it is no difference of the queue */
    const char *why;
    const char *tests; /* each as "suite.name " */
};

#endif
