/* machine_fail.c - assertions and signals of the library end the run, not the program. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"

/* The library's assertions are checks. */
void __assert_fail(const char *what, const char *file, unsigned line, const char *function)
{
    const char *slash = strrchr(file, '/');

    machine_fail("%s:%u: %s: assertion failed: %s", slash != NULL ? slash + 1 : file, line,
                 function, what);
    fprintf(stderr, "simulate: %s\n", machine.failure);
    exit(2);
}

/* Who touches what is not there fails, as an assertion does: the run ends, not the program. */
static void on_signal(int number)
{
    if (machine.me == NULL) {
        signal(number, SIG_DFL);
        raise(number);
    }
    machine_fail("%s: signal %d", machine.me->name, number);
}

void machine_catch_signals(void)
{
    static const int numbers[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL };
    static char memory[1u << 16];
    static bool caught;
    const stack_t stack = { .ss_sp = memory, .ss_size = sizeof memory };
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_NODEFER };

    if (caught)
        return;
    caught = true;
    sigaltstack(&stack, NULL);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaction(numbers[i], &action, NULL);
}
