/** A sink that counts what came out. */
class Tally implements Sink {
    final int payload;
    final boolean dated; // look at the clock: never early
    long count;
    long hash;
    long early;
    long garbled;
    long last; // when it got the last, if it looks at the clock

    Tally(int payload, boolean dated) {
        this.payload = payload;
        this.dated = dated;
    }

    @Override
    public void got(long number, long at, byte[] data) {
        if (dated) {
            last = Clock.real();
            early += at > last ? 1 : 0;
        }
        add(number, data);
    }

    void add(long number, byte[] data) {
        out(number);
        garbled += Stream.intact(number, data, payload) ? 0 : 1;
    }

    /** A job came out, or was cancelled. */
    void out(long number) {
        count++;
        hash += Stream.mix(number);
    }

    void sum(Tally other) {
        count += other.count;
        hash += other.hash;
        early += other.early;
        garbled += other.garbled;
    }

    /** All of the numbers below this came out, once each, intact and not early. */
    void check(long numbers) {
        long whole = 0;
        for (long i = 0; i < numbers; i++) {
            whole += Stream.mix(i);
        }
        if (early > 0) {
            throw Stop.wrong(early + " jobs were early");
        }
        if (garbled > 0) {
            throw Stop.wrong(garbled + " jobs were not as they went in");
        }
        if (count != numbers) {
            throw Stop.wrong(count + " jobs came out, not " + numbers);
        }
        if (hash != whole) {
            throw Stop.wrong(String.format("jobs are lost and others doubled: the hash is %016x, "
                    + "not %016x", hash, whole));
        }
    }
}
