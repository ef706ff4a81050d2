import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** What is asked of the kernel: usage, memory, and on which cores threads run. */
final class Machine {
    /** What threads have used, or the difference of two. */
    record Usage(double cpu, long voluntary, long involuntary) {
        static final Usage NONE = new Usage(0, 0, 0);

        Usage plus(Usage other, int sign) {
            return new Usage(cpu + sign * other.cpu, voluntary + sign * other.voluntary,
                    involuntary + sign * other.involuntary);
        }
    }

    /** Those that the process may run on, before it pins itself. */
    static final List<Integer> CORES = cores();

    /**
     * Of all threads but the calling one, which is busy reading this. In nanoseconds: what the
     * platform itself knows of processor time is in hundredths of a second.
     */
    static Usage usageOfOthers() {
        Usage sum = Usage.NONE;
        String own = thisThread();
        File[] tasks = new File("/proc/self/task").listFiles(task -> !task.getName().equals(own));
        for (File task : tasks == null ? new File[0] : tasks) {
            try {
                String cpu = Files.readString(task.toPath().resolve("schedstat")).split(" ")[0];
                String status = Files.readString(task.toPath().resolve("status"));
                sum = sum.plus(new Usage(Long.parseLong(cpu) / 1e9,
                        Long.parseLong(field(status, "voluntary_ctxt_switches:")),
                        Long.parseLong(field(status, "nonvoluntary_ctxt_switches:"))), 1);
            } catch (IOException e) {
                continue; // a thread of the platform's own has just ended
            }
        }
        return sum;
    }

    private static String thisThread() {
        try {
            return Files.readSymbolicLink(Path.of("/proc/thread-self")).getFileName().toString();
        } catch (IOException e) {
            throw Stop.cannot("a thread cannot know itself: " + e.getMessage());
        }
    }

    private static String field(String status, String name) {
        int at = status.indexOf("\n" + name);
        if (at < 0) {
            throw Stop.wrong("/proc/self/status has no " + name);
        }
        int from = at + 1 + name.length();
        return status.substring(from, status.indexOf('\n', from)).strip();
    }

    private static String status() {
        try {
            return Files.readString(Path.of("/proc/self/status"));
        } catch (IOException e) {
            throw Stop.wrong("cannot read /proc/self/status");
        }
    }

    /** Resident memory, in bytes, when garbage has been given back. */
    static long resident() {
        System.gc();
        System.gc();
        return Long.parseLong(field(status(), "VmRSS:").split(" ")[0]) * 1024;
    }

    private static List<Integer> cores() {
        List<Integer> list = new ArrayList<>();
        for (String part : field(status(), "Cpus_allowed_list:").split(",")) {
            String[] ends = part.split("-");
            int last = Integer.parseInt(ends[ends.length - 1]);
            for (int core = Integer.parseInt(ends[0]); core <= last; core++) {
                list.add(core);
            }
        }
        return list;
    }

    /** All threads of this process, and those to come. */
    static void pinProcess(int core) {
        command("taskset", "-a", "-c", "-p", "" + core, "" + ProcessHandle.current().pid());
    }

    static void pinThisThread(int core) {
        command("taskset", "-c", "-p", "" + core, thisThread());
    }

    private static void command(String... words) {
        try {
            Process p = new ProcessBuilder(words).redirectErrorStream(true)
                    .redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
            if (p.waitFor() != 0) {
                throw Stop.cannot(String.join(" ", words) + " failed");
            }
        } catch (IOException | InterruptedException e) {
            throw Stop.cannot("cannot be pinned: " + e.getMessage());
        }
    }

    /** Keeps a core from idling, and gives way to whoever has work; to be destroyed. */
    static Process hog(int core) {
        String loop = "while kill -0 " + ProcessHandle.current().pid() + "; do :; done";
        try {
            return new ProcessBuilder("chrt", "--idle", "0", "taskset", "-c", "" + core, "sh",
                    "-c", loop).redirectErrorStream(true)
                    .redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
        } catch (IOException e) {
            throw Stop.cannot("no process of policy SCHED_IDLE to be had: " + e.getMessage());
        }
    }

    private Machine() {}
}
