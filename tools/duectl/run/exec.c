/* exec.c - due jobs are handed to commands.
 *
 * Each worker runs one command at a time: sh -c CMD, with the text and a line feed on its standard
 * input, and the text in the environment as DUE_TEXT.  The input is a file in memory, so that a
 * command that does not read it cannot hold up its worker.
 *
 * A command leads a process group of its own: an interrupt from the keyboard goes to duectl alone,
 * and what a shell has started ends with it.  A child is named to the others only until it has
 * been waited for, so no signal goes to a process that took its number.
 */
#define _GNU_SOURCE
#include "run/run.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char variable[] = "DUE_TEXT=";

enum { NAME_ROOM = 4096 + 32 }; /* of a file, and a line */

/* ---- What a command is given ----------------------------------------------------------------- */

/* A descriptor from which the text and its line feed are read; -1 and errno. */
static int input_of(const struct ctl_job *job)
{
    int fd = memfd_create("text", MFD_CLOEXEC);
    size_t done = 0;

    if (fd < 0)
        return -1;
    while (done < job->len + 1) {
        ssize_t n = write(fd, job->text + done, job->len + 1 - done);

        if (n < 0 && errno != EINTR) {
            int error = errno;

            close(fd);
            errno = error;
            return -1;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    lseek(fd, 0, SEEK_SET);
    return fd;
}

/* The environment and, where it can stand there, the text.  One allocation; NULL: no memory. */
static char **environment_of(const struct ctl_job *job)
{
    bool fits = job->len <= CTL_ENV_MAX && memchr(job->text, '\0', job->len) == NULL;
    size_t n = 0;
    size_t out = 0;
    char **env;
    char *text;

    while (environ[n] != NULL)
        n++;
    env = malloc((n + 2) * sizeof *env + sizeof variable + (fits ? job->len : 0));
    if (env == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        if (strncmp(environ[i], variable, sizeof variable - 1) != 0)
            env[out++] = environ[i];
    }
    if (fits) {
        text = (char *)(env + n + 2);
        memcpy(text, variable, sizeof variable - 1);
        memcpy(text + sizeof variable - 1, job->text, job->len);
        text[sizeof variable - 1 + job->len] = '\0';
        env[out++] = text;
    }
    env[out] = NULL;
    return env;
}

/* Start the command: 0 or an errno. */
static int start(const char *command, int input, char **env, pid_t *pid)
{
    char *const argv[] = { "sh", "-c", (char *)(uintptr_t)command, NULL };
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigset_t defaults;
    int rc;

    sigemptyset(&none);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    rc = posix_spawn_file_actions_init(&actions);
    if (rc != 0)
        return rc;
    rc = posix_spawnattr_init(&attributes);
    if (rc != 0)
        goto free_actions;

    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    rc = posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    if (rc == 0)
        rc = posix_spawn(pid, "/bin/sh", &actions, &attributes, argv, env);

    posix_spawnattr_destroy(&attributes);
free_actions:
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

/* Give the text to a command that starts now: 0 or an errno. */
static int launch(const char *command, const struct ctl_job *job, pid_t *pid)
{
    char **env = environment_of(job);
    int input;
    int rc;

    if (env == NULL)
        return ENOMEM;
    input = input_of(job);
    rc = input < 0 ? errno : start(command, input, env, pid);
    if (input >= 0)
        close(input);
    free(env);
    return rc;
}

/* ---- Running commands ------------------------------------------------------------------------ */

static void crew_enter(struct ctl_crew *crew, int number, pid_t pid)
{
    pthread_mutex_lock(&crew->lock);
    crew->pids[number] = pid;
    if (crew->signal != 0)
        kill(-pid, crew->signal);
    pthread_mutex_unlock(&crew->lock);
}

static void crew_leave(struct ctl_crew *crew, int number)
{
    pthread_mutex_lock(&crew->lock);
    crew->pids[number] = 0;
    pthread_mutex_unlock(&crew->lock);
}

void ctl_crew_signal(struct ctl_crew *crew, int signal)
{
    pthread_mutex_lock(&crew->lock);
    crew->signal = signal;
    for (size_t i = 0; i < CTL_WORKERS_MAX; i++) {
        if (crew->pids[i] != 0)
            kill(-crew->pids[i], signal);
    }
    pthread_mutex_unlock(&crew->lock);
}

/* Wait for a command: its status as waitpid() has it. */
static int wait_for(struct ctl_crew *crew, int number, pid_t pid)
{
    siginfo_t info;
    int status = 0;

    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR)
        continue;
    crew_leave(crew, number);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

/* A job that came from the store: its id, and the beginning of its text. */
static const char *name_of_stored(char name[NAME_ROOM], due_id id, const void *text, size_t len)
{
    char shown[CTL_EXCERPT + 4];
    char digits[DUE_ID_TEXT];

    snprintf(name, NAME_ROOM, "job %s (%s)", due_id_format(id, digits),
             ctl_text_show(shown, sizeof shown, text, len));
    return name;
}

/* Which job it is. */
static const char *name_of(char name[NAME_ROOM], const struct ctl_run *run,
                           const struct ctl_job *job)
{
    if (job->line == 0)
        name_of_stored(name, job->id, job->text, job->len);
    else
        snprintf(name, NAME_ROOM, "%s:%llu", run->in.name, (unsigned long long)job->line);
    return name;
}

static void say_failure(struct ctl_run *run, const struct ctl_job *job, const char *what,
                        int number)
{
    char name[NAME_ROOM];

    ctl_say(&run->screen, "duectl: %s: the command %s %d\n", name_of(name, run, job), what, number);
}

enum ctl_outcome ctl_exec_job(struct ctl_run *run, int number, const struct ctl_job *job)
{
    char name[NAME_ROOM];
    pid_t pid;
    int status;
    int rc = launch(run->options->exec, job, &pid);

    if (rc != 0) {
        ctl_say(&run->screen, "duectl: %s: the command cannot be started: %s\n",
                name_of(name, run, job), strerror(rc));
        return CTL_FAILED;
    }
    crew_enter(&run->crew, number, pid);
    status = wait_for(&run->crew, number, pid);
    if (WIFSIGNALED(status))
        say_failure(run, job, "was ended by signal", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        say_failure(run, job, "ended with status", WEXITSTATUS(status));
    else
        return CTL_DONE;
    return WIFEXITED(status) && WEXITSTATUS(status) == CTL_TEMPFAIL ? CTL_AGAIN : CTL_FAILED;
}

bool ctl_was_stopped(struct ctl_crew *crew)
{
    bool stopped;

    pthread_mutex_lock(&crew->lock);
    stopped = crew->signal != 0;
    pthread_mutex_unlock(&crew->lock);
    return stopped;
}

bool ctl_retries(const struct ctl_run *run, const due_job *due, enum ctl_outcome outcome)
{
    const struct ctl_options *o = run->options;
    uint32_t most = outcome == CTL_AGAIN ? UINT32_MAX : o->attempts;

    if (o->retry.kind == DUE_RETRY_LADDER && most > o->retry.rungs + 1)
        most = o->retry.rungs + 1;
    return outcome != CTL_DONE && o->retries && due->attempts < most;
}

bool ctl_is_fatal(struct ctl_run *run, const due_job *due)
{
    uint32_t answered = due->failures + 1; /* this one is still to be */
    char name[NAME_ROOM];

    if (due->attempts <= answered || due->attempts - answered < run->options->attempts)
        return false;
    ctl_say(&run->screen, "duectl: %s is given up: duectl did not outlive its last attempts\n",
            name_of_stored(name, due->id, due->data, due->len));
    return true;
}

/* A job of this run comes again; it is not freed then. */
static bool again(struct ctl_run *run, due_job *due, enum ctl_outcome outcome)
{
    if (!ctl_retries(run, due, outcome))
        return false;
    return due_nack(due, ctl_was_stopped(&run->crew) ? 0 : DUE_DELAY_POLICY) == 0;
}

/* For good or, where it may come again, until it is answered for. */
static int take(struct ctl_run *run, due_job *due)
{
    if (run->options->retries)
        return due_reserve(run->queue, due, DUE_FOREVER);
    return due_dequeue(run->queue, due, DUE_FOREVER);
}

void ctl_exec(struct ctl_run *run, int number)
{
    due_job due;

    while (take(run, &due) == 0) {
        struct ctl_job *job = due.ptr;

        int64_t deadline_ns = due.deadline_ns;

        if (due.attempts > 1 || !ctl_job_is_over(run, &due)) {
            if (due.attempts <= 1)
                ctl_job_taken(run, &due);
            enum ctl_outcome outcome = ctl_exec_job(run, number, job);
            if (again(run, &due, outcome))
                continue;
            ctl_tally_add(&run->tally, &run->tally.counts.delivered, 1);
            ctl_tally_add(&run->tally, &run->tally.counts.failed, outcome != CTL_DONE);
        }
        if (!run->options->retries || due_ack(&due) != 0)
            due_job_done(&due);
        ctl_job_end(run, job, deadline_ns);
    }
}
