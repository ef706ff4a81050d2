/* words.h - what the explorer has seen of the words of jobs. */
#ifndef DUE__EXPLORE_WORDS_H
#define DUE__EXPLORE_WORDS_H

/* Prints the changes that the table of src/mem/word.c allows and that were never seen: how many. */
unsigned words_report(void);

#endif
