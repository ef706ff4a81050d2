#!/bin/sh
# tiny.sh PROGRAM SUBJECT - every workload with this subject, as small as can be, so that none rots.
#
# A cell may answer 0, with a line of the right count, or 3, "this subject cannot".  77: this
# program was built without the subject.
program=$1
subject=$2

"$program" --list | cut -f 1 | grep -qx -- "$subject" || {
    echo "$program has no subject $subject"
    exit 77
}

failed=0
ran=0

# cell COUNT WORKLOAD OPTION...
cell() {
    count=$1
    shift
    line=$("$program" "$@" --subject "$subject" --live 100)
    status=$?
    case $status in
    0) ran=$((ran + 1)) ;;
    3) return ;;
    *)
        echo "exit status $status: $*"
        failed=1
        return
        ;;
    esac
    case $line in
    "{\"workload\":\"$1\",\"subject\":\"$subject\",\"value\":"*"\"count\":$count,"*"}}") ;;
    *)
        echo "unexpected line: $*: $line"
        failed=1
        ;;
    esac
}

for more in "" "--producers 3" "--batch 32" "--payload 8" "--payload 100 --topics 7" "--pin"; do
    cell 1000 enqueue --jobs 1000 $more
    cell 1000 cancel --jobs 1000 $more
    cell 1100 timeout --jobs 1000 $more
    cell 1000 through --jobs 1000 $more
    cell 1000 through --jobs 1000 --spread-ns 1000000 --consumers 3 $more
    cell 1000 drain --jobs 1000 --consumers 3 $more
    cell 1000 slow --jobs 1000 --think-ns 100000 $more
    cell 20 lateness --jobs 20 $more
    cell 1000 memory --jobs 1000 $more
    cell 100 reschedule --jobs 1000 $more
    cell 0 nothing --jobs 1000 $more
done
for more in "--payload 100" "--topics 7" "--shape exponential" "--shape clustered" "--shape heavy" \
    "--shape sawtooth" "--shape equal" "--shape decades"; do
    cell 2100 hold --jobs 1000 $more
    cell 1000 mixed --jobs 1000 $more
done
cell 2100 hold --jobs 1000 --real
cell 20 lateness --jobs 20 --consumers 2
cell 20 lateness --jobs 20 --spin-ns 50000
cell 400 burst --jobs 400
for where in asleep same awake; do
    cell 20 handoff --jobs 20 --where $where
done

test "$ran" -gt 0 || {
    echo "$subject could do nothing"
    failed=1
}
exit $failed
