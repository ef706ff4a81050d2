import java.util.function.Function;

/** A subject: whether it can cancel, and can be given a virtual clock. */
record Subject(
        String name, String about, boolean cancels, boolean turns, Function<Setup, Rival> open) {

    /** What it is opened for; virtual: on a virtual clock, if it can. */
    record Setup(int consumers, boolean virtual) {}

    String can() {
        return (cancels ? "cancel " : "") + (turns ? "virtual " : "") + "payload";
    }
}
