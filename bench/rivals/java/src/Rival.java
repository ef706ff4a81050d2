/** The table of operations that every subject fills in. */
interface Rival {
    long END = -1; // the number of a job that ends a consumer

    /**
     * Called by any thread. With {@code at} 0 the job is due at once: the subject reads the clock
     * if it needs it. What it answers names the job for {@link #cancel}.
     */
    Object put(long number, long at, byte[] data);

    /** True: nobody will get it. */
    boolean cancel(Object handle);

    /** The first due job, on a virtual clock; or null. */
    Job poll();

    /** No job has come out by itself, or would now. */
    boolean idle();

    /** Nothing waits in it. */
    boolean empty();

    /** From now on jobs go to these, each in a thread of its own. */
    void start(Sink[] sinks);

    /** All is put in, the latest at this time: consumers end when all is out. */
    void finish(long latest);

    /** Those threads. */
    Crew crew();
}
