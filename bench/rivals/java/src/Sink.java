/** Gets what a consumer takes, in that consumer. */
interface Sink {
    void got(long number, long at, byte[] data);
}
