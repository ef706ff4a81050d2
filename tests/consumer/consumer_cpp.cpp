// consumer_cpp.cpp - the same in C++11: the headers must please a C++ compiler too.
#include <due/due.h>
#include <due/metrics.h>
#include <due/signals.h>
#include <due/store.h>
#include <due/workers.h>

#include <cstring>
#include <iostream>

int main()
{
    due_queue *q = nullptr;
    due_job job;
    due_options options = due_options();
    due_spec spec = due_spec();

    options.size = sizeof(due_options);
    options.name = "consumer";
    spec.size = sizeof(due_spec);
    spec.delay_ns = DUE_MS(1);
    spec.data = "tea";
    spec.len = 4;
    if (due_open(&q, &options, nullptr) != 0 || due_enqueue(q, &spec, 0, nullptr) != 0)
        return 1;
    if (due_dequeue(q, &job, DUE_S(10)) != 0 || std::strcmp("tea", (const char *)job.data) != 0)
        return 1;
    due_job_done(&job);
    if (due_close(q, DUE_CLOSE_DRAIN, DUE_S(10)) != 0 || due_free(q) != 0)
        return 1;
    std::cout << "consumer: ok" << std::endl;
    return 0;
}
