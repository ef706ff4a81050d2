#!/bin/sh
# wrong.sh PROGRAM - a subject with a fault gets no line, but exit status 1 and a message; so that
# the figures of the others can be believed.
program=$1
failed=0

# wrong FAULT WORKLOAD OPTION...: this fault must be seen in this workload.
wrong() {
    fault=$1
    shift
    line=$("$program" "$@" --subject "broken-$fault" --jobs 1000 --live 100 2>/dev/null)
    status=$?
    if [ $status -ne 1 ] || [ -n "$line" ]; then
        echo "broken-$fault: $*: exit status $status, line \"$line\""
        failed=1
    fi
}

# fine WORKLOAD OPTION...: the same, without the fault.
fine() {
    "$program" "$@" --subject mutex-heap --jobs 1000 --live 100 >/dev/null || {
        echo "mutex-heap: $*: exit status $?"
        failed=1
    }
}

dense="--spread-ns 1000000"
for fault in lost double; do
    for workload in enqueue hold through slow "through --spread-ns 1000000" \
        "through --payload 100 --consumers 3" "mixed --percent 0" "lateness --gap-ns 1000"; do
        wrong $fault $workload
        fine $workload
    done
done
for fault in lost double; do
    wrong $fault hold --real
    wrong $fault reschedule
done
for workload in "hold --real" reschedule nothing; do
    fine $workload
done
wrong order reschedule
wrong double burst
for workload in enqueue hold "mixed --percent 0" "lateness --gap-ns 1000"; do
    wrong early $workload $dense
done
wrong early through --spread-ns 100000000 # longer than a machine is held up
for workload in enqueue hold "mixed --percent 0" "lateness --gap-ns 1000"; do
    wrong order $workload $dense
    fine $workload $dense
done
for workload in cancel "cancel --batch 32" timeout "mixed --percent 100" memory; do
    wrong cancel $workload
    fine $workload
done
for workload in enqueue hold through "mixed --percent 0" burst; do
    wrong bytes $workload --payload 100
    fine $workload --payload 100
done

# Wrong usage is 2, and what cannot be done 3.
"$program" enqueue --subject mutex-heap --jobs 0 2>/dev/null
test $? -eq 2 || failed=1
"$program" enqueue --subject no-such-subject 2>/dev/null
test $? -eq 2 || failed=1
"$program" enqueue --subject mutex-heap --topics 2 2>/dev/null
test $? -eq 3 || failed=1
exit $failed
