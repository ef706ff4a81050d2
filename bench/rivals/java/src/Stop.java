/** The end of a cell that prints no line. */
final class Stop extends RuntimeException {
    private static final long serialVersionUID = 1;

    final int status;

    private Stop(int status, String message) {
        super(message);
        this.status = status;
    }

    /** The outcome is wrong. */
    static Stop wrong(String message) {
        return new Stop(1, message);
    }

    static Stop usage(String message) {
        return new Stop(2, message);
    }

    /** This subject cannot do this workload. */
    static Stop cannot(String message) {
        return new Stop(3, message);
    }
}
